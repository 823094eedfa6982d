"""Fixtures of the tests of artefacts."""

from tests.support.s3 import moto_bucket as moto_bucket
from tests.support.s3 import moto_endpoint as moto_endpoint
