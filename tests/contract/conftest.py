"""Fixtures of the contract suites."""

from tests.support.places import busybox_image as busybox_image
from tests.support.places import place as place
from tests.support.places import podman_url as podman_url
from tests.support.s3 import ceph_bucket as ceph_bucket
from tests.support.s3 import ceph_endpoint as ceph_endpoint
from tests.support.s3 import moto_bucket as moto_bucket
from tests.support.s3 import moto_endpoint as moto_endpoint
