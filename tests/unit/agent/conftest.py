"""Shared parts of the agent's unit tests."""

from tests.fake_nvml.build import fake_library as fake_library
from tests.fake_nvml.build import fake_nvml as fake_nvml
from tests.fake_nvml.build import old_library as old_library
from tests.fake_nvml.build import old_nvml as old_nvml
