"""History in a Prometheus-compatible store: samples by remote write, charts by PromQL."""
