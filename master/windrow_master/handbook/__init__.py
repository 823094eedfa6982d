"""The documentation that a market serves: reads the pages of docs/, draws them as HTML, searches them."""
