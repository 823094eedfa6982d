"""Fixtures of the contract suites."""

from tests.support.places import busybox_image as busybox_image
from tests.support.places import place as place
