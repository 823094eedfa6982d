"""Fixtures of the contract suites."""

from tests.support.backend_worlds import ec2_world as ec2_world
from tests.support.backend_worlds import memory_world as memory_world
from tests.support.backend_worlds import modal_server as modal_server
from tests.support.backend_worlds import modal_world as modal_world
from tests.support.backend_worlds import moto_amazon as moto_amazon
from tests.support.backend_worlds import ssh_machine as ssh_machine
from tests.support.backend_worlds import ssh_world as ssh_world
from tests.support.places import busybox_image as busybox_image
from tests.support.places import place as place
from tests.support.places import podman_url as podman_url
from tests.support.s3 import ceph_bucket as ceph_bucket
from tests.support.s3 import ceph_endpoint as ceph_endpoint
from tests.support.s3 import moto_bucket as moto_bucket
from tests.support.s3 import moto_endpoint as moto_endpoint
from tests.support.schema import migrated_once as migrated_once
