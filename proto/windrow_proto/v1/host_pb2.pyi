from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Isolation(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ISOLATION_UNSPECIFIED: _ClassVar[Isolation]
    ISOLATION_WHOLE: _ClassVar[Isolation]
    ISOLATION_MIG: _ClassVar[Isolation]
    ISOLATION_MPS: _ClassVar[Isolation]
    ISOLATION_SHARED: _ClassVar[Isolation]

class CommandKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    COMMAND_KIND_UNSPECIFIED: _ClassVar[CommandKind]
    COMMAND_KIND_CREATE: _ClassVar[CommandKind]
    COMMAND_KIND_DELETE: _ClassVar[CommandKind]
    COMMAND_KIND_MEASURE_BANDWIDTH: _ClassVar[CommandKind]
    COMMAND_KIND_BENCHMARK: _ClassVar[CommandKind]
    COMMAND_KIND_PARTITION: _ClassVar[CommandKind]
    COMMAND_KIND_START: _ClassVar[CommandKind]

class CommandPhase(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    COMMAND_PHASE_UNSPECIFIED: _ClassVar[CommandPhase]
    COMMAND_PHASE_ACCEPTED: _ClassVar[CommandPhase]
    COMMAND_PHASE_RUNNING: _ClassVar[CommandPhase]
    COMMAND_PHASE_SUCCEEDED: _ClassVar[CommandPhase]
    COMMAND_PHASE_FAILED: _ClassVar[CommandPhase]
    COMMAND_PHASE_CANCELLED: _ClassVar[CommandPhase]
    COMMAND_PHASE_REFUSED: _ClassVar[CommandPhase]
    COMMAND_PHASE_NEVER_SEEN: _ClassVar[CommandPhase]

class WorkloadPhase(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WORKLOAD_PHASE_UNSPECIFIED: _ClassVar[WorkloadPhase]
    WORKLOAD_PHASE_PREPARING: _ClassVar[WorkloadPhase]
    WORKLOAD_PHASE_WAITING_FILES: _ClassVar[WorkloadPhase]
    WORKLOAD_PHASE_RUNNING: _ClassVar[WorkloadPhase]
    WORKLOAD_PHASE_EXITED: _ClassVar[WorkloadPhase]
    WORKLOAD_PHASE_STOPPING: _ClassVar[WorkloadPhase]
    WORKLOAD_PHASE_GONE: _ClassVar[WorkloadPhase]
    WORKLOAD_PHASE_FAILED: _ClassVar[WorkloadPhase]
    WORKLOAD_PHASE_WAITING_MEMBERS: _ClassVar[WorkloadPhase]
    WORKLOAD_PHASE_WAITING_VOLUMES: _ClassVar[WorkloadPhase]

class ChannelPurpose(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CHANNEL_PURPOSE_UNSPECIFIED: _ClassVar[ChannelPurpose]
    CHANNEL_PURPOSE_LOGS: _ClassVar[ChannelPurpose]
    CHANNEL_PURPOSE_EXEC: _ClassVar[ChannelPurpose]
    CHANNEL_PURPOSE_FILES_IN: _ClassVar[ChannelPurpose]
    CHANNEL_PURPOSE_FILES_OUT: _ClassVar[ChannelPurpose]
    CHANNEL_PURPOSE_TCP: _ClassVar[ChannelPurpose]
    CHANNEL_PURPOSE_TUNNEL: _ClassVar[ChannelPurpose]
    CHANNEL_PURPOSE_CHALLENGE: _ClassVar[ChannelPurpose]
    CHANNEL_PURPOSE_CHECKPOINT: _ClassVar[ChannelPurpose]
    CHANNEL_PURPOSE_CORD: _ClassVar[ChannelPurpose]
    CHANNEL_PURPOSE_SIGHT: _ClassVar[ChannelPurpose]
    CHANNEL_PURPOSE_TERMINAL: _ClassVar[ChannelPurpose]
ISOLATION_UNSPECIFIED: Isolation
ISOLATION_WHOLE: Isolation
ISOLATION_MIG: Isolation
ISOLATION_MPS: Isolation
ISOLATION_SHARED: Isolation
COMMAND_KIND_UNSPECIFIED: CommandKind
COMMAND_KIND_CREATE: CommandKind
COMMAND_KIND_DELETE: CommandKind
COMMAND_KIND_MEASURE_BANDWIDTH: CommandKind
COMMAND_KIND_BENCHMARK: CommandKind
COMMAND_KIND_PARTITION: CommandKind
COMMAND_KIND_START: CommandKind
COMMAND_PHASE_UNSPECIFIED: CommandPhase
COMMAND_PHASE_ACCEPTED: CommandPhase
COMMAND_PHASE_RUNNING: CommandPhase
COMMAND_PHASE_SUCCEEDED: CommandPhase
COMMAND_PHASE_FAILED: CommandPhase
COMMAND_PHASE_CANCELLED: CommandPhase
COMMAND_PHASE_REFUSED: CommandPhase
COMMAND_PHASE_NEVER_SEEN: CommandPhase
WORKLOAD_PHASE_UNSPECIFIED: WorkloadPhase
WORKLOAD_PHASE_PREPARING: WorkloadPhase
WORKLOAD_PHASE_WAITING_FILES: WorkloadPhase
WORKLOAD_PHASE_RUNNING: WorkloadPhase
WORKLOAD_PHASE_EXITED: WorkloadPhase
WORKLOAD_PHASE_STOPPING: WorkloadPhase
WORKLOAD_PHASE_GONE: WorkloadPhase
WORKLOAD_PHASE_FAILED: WorkloadPhase
WORKLOAD_PHASE_WAITING_MEMBERS: WorkloadPhase
WORKLOAD_PHASE_WAITING_VOLUMES: WorkloadPhase
CHANNEL_PURPOSE_UNSPECIFIED: ChannelPurpose
CHANNEL_PURPOSE_LOGS: ChannelPurpose
CHANNEL_PURPOSE_EXEC: ChannelPurpose
CHANNEL_PURPOSE_FILES_IN: ChannelPurpose
CHANNEL_PURPOSE_FILES_OUT: ChannelPurpose
CHANNEL_PURPOSE_TCP: ChannelPurpose
CHANNEL_PURPOSE_TUNNEL: ChannelPurpose
CHANNEL_PURPOSE_CHALLENGE: ChannelPurpose
CHANNEL_PURPOSE_CHECKPOINT: ChannelPurpose
CHANNEL_PURPOSE_CORD: ChannelPurpose
CHANNEL_PURPOSE_SIGHT: ChannelPurpose
CHANNEL_PURPOSE_TERMINAL: ChannelPurpose

class GpuSlice(_message.Message):
    __slots__ = ("uuid", "profile", "isolation", "memory_bytes", "compute_slices")
    UUID_FIELD_NUMBER: _ClassVar[int]
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    ISOLATION_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    COMPUTE_SLICES_FIELD_NUMBER: _ClassVar[int]
    uuid: str
    profile: str
    isolation: Isolation
    memory_bytes: int
    compute_slices: int
    def __init__(self, uuid: _Optional[str] = ..., profile: _Optional[str] = ..., isolation: _Optional[_Union[Isolation, str]] = ..., memory_bytes: _Optional[int] = ..., compute_slices: _Optional[int] = ...) -> None: ...

class GpuFacts(_message.Message):
    __slots__ = ("uuid", "index", "vendor", "name", "pci_bus_id", "pci_device_id", "pci_subsystem_id", "memory_bytes", "compute_capability_major", "compute_capability_minor", "serial", "vbios", "power_limit_mw", "power_limit_max_mw", "clock_sm_max_mhz", "clock_memory_max_mhz", "pcie_generation_max", "pcie_width_max", "core_count", "memory_bus_bits", "ecc_enabled", "mig_enabled", "numa_node", "device_minor", "figures", "words", "slices", "layout")
    class FiguresEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class WordsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    UUID_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    VENDOR_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PCI_BUS_ID_FIELD_NUMBER: _ClassVar[int]
    PCI_DEVICE_ID_FIELD_NUMBER: _ClassVar[int]
    PCI_SUBSYSTEM_ID_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    COMPUTE_CAPABILITY_MAJOR_FIELD_NUMBER: _ClassVar[int]
    COMPUTE_CAPABILITY_MINOR_FIELD_NUMBER: _ClassVar[int]
    SERIAL_FIELD_NUMBER: _ClassVar[int]
    VBIOS_FIELD_NUMBER: _ClassVar[int]
    POWER_LIMIT_MW_FIELD_NUMBER: _ClassVar[int]
    POWER_LIMIT_MAX_MW_FIELD_NUMBER: _ClassVar[int]
    CLOCK_SM_MAX_MHZ_FIELD_NUMBER: _ClassVar[int]
    CLOCK_MEMORY_MAX_MHZ_FIELD_NUMBER: _ClassVar[int]
    PCIE_GENERATION_MAX_FIELD_NUMBER: _ClassVar[int]
    PCIE_WIDTH_MAX_FIELD_NUMBER: _ClassVar[int]
    CORE_COUNT_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BUS_BITS_FIELD_NUMBER: _ClassVar[int]
    ECC_ENABLED_FIELD_NUMBER: _ClassVar[int]
    MIG_ENABLED_FIELD_NUMBER: _ClassVar[int]
    NUMA_NODE_FIELD_NUMBER: _ClassVar[int]
    DEVICE_MINOR_FIELD_NUMBER: _ClassVar[int]
    FIGURES_FIELD_NUMBER: _ClassVar[int]
    WORDS_FIELD_NUMBER: _ClassVar[int]
    SLICES_FIELD_NUMBER: _ClassVar[int]
    LAYOUT_FIELD_NUMBER: _ClassVar[int]
    uuid: str
    index: int
    vendor: str
    name: str
    pci_bus_id: str
    pci_device_id: int
    pci_subsystem_id: int
    memory_bytes: int
    compute_capability_major: int
    compute_capability_minor: int
    serial: str
    vbios: str
    power_limit_mw: int
    power_limit_max_mw: int
    clock_sm_max_mhz: int
    clock_memory_max_mhz: int
    pcie_generation_max: int
    pcie_width_max: int
    core_count: int
    memory_bus_bits: int
    ecc_enabled: bool
    mig_enabled: bool
    numa_node: int
    device_minor: int
    figures: _containers.ScalarMap[str, int]
    words: _containers.ScalarMap[str, str]
    slices: _containers.RepeatedCompositeFieldContainer[GpuSlice]
    layout: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, uuid: _Optional[str] = ..., index: _Optional[int] = ..., vendor: _Optional[str] = ..., name: _Optional[str] = ..., pci_bus_id: _Optional[str] = ..., pci_device_id: _Optional[int] = ..., pci_subsystem_id: _Optional[int] = ..., memory_bytes: _Optional[int] = ..., compute_capability_major: _Optional[int] = ..., compute_capability_minor: _Optional[int] = ..., serial: _Optional[str] = ..., vbios: _Optional[str] = ..., power_limit_mw: _Optional[int] = ..., power_limit_max_mw: _Optional[int] = ..., clock_sm_max_mhz: _Optional[int] = ..., clock_memory_max_mhz: _Optional[int] = ..., pcie_generation_max: _Optional[int] = ..., pcie_width_max: _Optional[int] = ..., core_count: _Optional[int] = ..., memory_bus_bits: _Optional[int] = ..., ecc_enabled: _Optional[bool] = ..., mig_enabled: _Optional[bool] = ..., numa_node: _Optional[int] = ..., device_minor: _Optional[int] = ..., figures: _Optional[_Mapping[str, int]] = ..., words: _Optional[_Mapping[str, str]] = ..., slices: _Optional[_Iterable[_Union[GpuSlice, _Mapping]]] = ..., layout: _Optional[_Iterable[str]] = ...) -> None: ...

class Inventory(_message.Message):
    __slots__ = ("hostname", "os", "kernel", "cpu_model", "cpu_count", "cpu_physical", "memory_bytes", "disk_bytes", "machine_id_hash", "agent_version", "simulated", "driver_version", "cuda_version", "gpus", "runtimes", "conditions", "runtime_versions", "benchmarks", "owner_account", "addresses", "figures", "words")
    class RuntimeVersionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class FiguresEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class WordsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    HOSTNAME_FIELD_NUMBER: _ClassVar[int]
    OS_FIELD_NUMBER: _ClassVar[int]
    KERNEL_FIELD_NUMBER: _ClassVar[int]
    CPU_MODEL_FIELD_NUMBER: _ClassVar[int]
    CPU_COUNT_FIELD_NUMBER: _ClassVar[int]
    CPU_PHYSICAL_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    DISK_BYTES_FIELD_NUMBER: _ClassVar[int]
    MACHINE_ID_HASH_FIELD_NUMBER: _ClassVar[int]
    AGENT_VERSION_FIELD_NUMBER: _ClassVar[int]
    SIMULATED_FIELD_NUMBER: _ClassVar[int]
    DRIVER_VERSION_FIELD_NUMBER: _ClassVar[int]
    CUDA_VERSION_FIELD_NUMBER: _ClassVar[int]
    GPUS_FIELD_NUMBER: _ClassVar[int]
    RUNTIMES_FIELD_NUMBER: _ClassVar[int]
    CONDITIONS_FIELD_NUMBER: _ClassVar[int]
    RUNTIME_VERSIONS_FIELD_NUMBER: _ClassVar[int]
    BENCHMARKS_FIELD_NUMBER: _ClassVar[int]
    OWNER_ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    ADDRESSES_FIELD_NUMBER: _ClassVar[int]
    FIGURES_FIELD_NUMBER: _ClassVar[int]
    WORDS_FIELD_NUMBER: _ClassVar[int]
    hostname: str
    os: str
    kernel: str
    cpu_model: str
    cpu_count: int
    cpu_physical: int
    memory_bytes: int
    disk_bytes: int
    machine_id_hash: str
    agent_version: str
    simulated: bool
    driver_version: str
    cuda_version: str
    gpus: _containers.RepeatedCompositeFieldContainer[GpuFacts]
    runtimes: _containers.RepeatedScalarFieldContainer[str]
    conditions: _containers.RepeatedScalarFieldContainer[str]
    runtime_versions: _containers.ScalarMap[str, str]
    benchmarks: _containers.RepeatedCompositeFieldContainer[Benchmark]
    owner_account: str
    addresses: _containers.RepeatedScalarFieldContainer[str]
    figures: _containers.ScalarMap[str, int]
    words: _containers.ScalarMap[str, str]
    def __init__(self, hostname: _Optional[str] = ..., os: _Optional[str] = ..., kernel: _Optional[str] = ..., cpu_model: _Optional[str] = ..., cpu_count: _Optional[int] = ..., cpu_physical: _Optional[int] = ..., memory_bytes: _Optional[int] = ..., disk_bytes: _Optional[int] = ..., machine_id_hash: _Optional[str] = ..., agent_version: _Optional[str] = ..., simulated: _Optional[bool] = ..., driver_version: _Optional[str] = ..., cuda_version: _Optional[str] = ..., gpus: _Optional[_Iterable[_Union[GpuFacts, _Mapping]]] = ..., runtimes: _Optional[_Iterable[str]] = ..., conditions: _Optional[_Iterable[str]] = ..., runtime_versions: _Optional[_Mapping[str, str]] = ..., benchmarks: _Optional[_Iterable[_Union[Benchmark, _Mapping]]] = ..., owner_account: _Optional[str] = ..., addresses: _Optional[_Iterable[str]] = ..., figures: _Optional[_Mapping[str, int]] = ..., words: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Benchmark(_message.Message):
    __slots__ = ("name", "value", "unit", "measured_wall_ns", "subject")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    MEASURED_WALL_NS_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: float
    unit: str
    measured_wall_ns: int
    subject: str
    def __init__(self, name: _Optional[str] = ..., value: _Optional[float] = ..., unit: _Optional[str] = ..., measured_wall_ns: _Optional[int] = ..., subject: _Optional[str] = ...) -> None: ...

class TelemetryBatch(_message.Message):
    __slots__ = ("start_wall_ns", "at_ms", "metric", "device", "values", "devices", "absent", "deflated")
    START_WALL_NS_FIELD_NUMBER: _ClassVar[int]
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    METRIC_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    ABSENT_FIELD_NUMBER: _ClassVar[int]
    DEFLATED_FIELD_NUMBER: _ClassVar[int]
    start_wall_ns: int
    at_ms: _containers.RepeatedScalarFieldContainer[int]
    metric: _containers.RepeatedScalarFieldContainer[int]
    device: _containers.RepeatedScalarFieldContainer[int]
    values: _containers.RepeatedScalarFieldContainer[int]
    devices: _containers.RepeatedScalarFieldContainer[str]
    absent: bytes
    deflated: bytes
    def __init__(self, start_wall_ns: _Optional[int] = ..., at_ms: _Optional[_Iterable[int]] = ..., metric: _Optional[_Iterable[int]] = ..., device: _Optional[_Iterable[int]] = ..., values: _Optional[_Iterable[int]] = ..., devices: _Optional[_Iterable[str]] = ..., absent: _Optional[bytes] = ..., deflated: _Optional[bytes] = ...) -> None: ...

class TelemetryColumns(_message.Message):
    __slots__ = ("start_wall_ns", "at_ms", "metric", "device", "values", "devices", "absent", "deflated")
    START_WALL_NS_FIELD_NUMBER: _ClassVar[int]
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    METRIC_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    ABSENT_FIELD_NUMBER: _ClassVar[int]
    DEFLATED_FIELD_NUMBER: _ClassVar[int]
    start_wall_ns: int
    at_ms: bytes
    metric: bytes
    device: bytes
    values: bytes
    devices: _containers.RepeatedScalarFieldContainer[str]
    absent: bytes
    deflated: bytes
    def __init__(self, start_wall_ns: _Optional[int] = ..., at_ms: _Optional[bytes] = ..., metric: _Optional[bytes] = ..., device: _Optional[bytes] = ..., values: _Optional[bytes] = ..., devices: _Optional[_Iterable[str]] = ..., absent: _Optional[bytes] = ..., deflated: _Optional[bytes] = ...) -> None: ...

class Command(_message.Message):
    __slots__ = ("command_id", "kind", "create", "delete", "bandwidth", "partition", "start")
    COMMAND_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    CREATE_FIELD_NUMBER: _ClassVar[int]
    DELETE_FIELD_NUMBER: _ClassVar[int]
    BANDWIDTH_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    command_id: str
    kind: CommandKind
    create: WorkloadSpec
    delete: DeleteSpec
    bandwidth: BandwidthSpec
    partition: PartitionSpec
    start: StartSpec
    def __init__(self, command_id: _Optional[str] = ..., kind: _Optional[_Union[CommandKind, str]] = ..., create: _Optional[_Union[WorkloadSpec, _Mapping]] = ..., delete: _Optional[_Union[DeleteSpec, _Mapping]] = ..., bandwidth: _Optional[_Union[BandwidthSpec, _Mapping]] = ..., partition: _Optional[_Union[PartitionSpec, _Mapping]] = ..., start: _Optional[_Union[StartSpec, _Mapping]] = ...) -> None: ...

class StartSpec(_message.Message):
    __slots__ = ("workload_id", "slots")
    WORKLOAD_ID_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    workload_id: str
    slots: _containers.RepeatedCompositeFieldContainer[SlotGrant]
    def __init__(self, workload_id: _Optional[str] = ..., slots: _Optional[_Iterable[_Union[SlotGrant, _Mapping]]] = ...) -> None: ...

class PartitionSpec(_message.Message):
    __slots__ = ("gpu_uuid", "profiles")
    GPU_UUID_FIELD_NUMBER: _ClassVar[int]
    PROFILES_FIELD_NUMBER: _ClassVar[int]
    gpu_uuid: str
    profiles: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, gpu_uuid: _Optional[str] = ..., profiles: _Optional[_Iterable[str]] = ...) -> None: ...

class SlotGrant(_message.Message):
    __slots__ = ("slot_id", "token", "gpu_uuid", "isolation")
    SLOT_ID_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    GPU_UUID_FIELD_NUMBER: _ClassVar[int]
    ISOLATION_FIELD_NUMBER: _ClassVar[int]
    slot_id: str
    token: int
    gpu_uuid: str
    isolation: Isolation
    def __init__(self, slot_id: _Optional[str] = ..., token: _Optional[int] = ..., gpu_uuid: _Optional[str] = ..., isolation: _Optional[_Union[Isolation, str]] = ...) -> None: ...

class WorkloadSpec(_message.Message):
    __slots__ = ("workload_id", "cluster_id", "slots", "runtime", "image", "argv", "env", "cpu_milli", "memory_bytes", "ports", "await_files", "lease_ns", "paid_ns", "log_cap_bytes", "files_cap_bytes", "await_members", "address", "listens", "peers", "registry_login", "volumes", "may_use_local_image", "sealed_env", "entrypoint", "starts_in_workspace")
    class EnvEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    WORKLOAD_ID_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    RUNTIME_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    ARGV_FIELD_NUMBER: _ClassVar[int]
    ENV_FIELD_NUMBER: _ClassVar[int]
    CPU_MILLI_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    PORTS_FIELD_NUMBER: _ClassVar[int]
    AWAIT_FILES_FIELD_NUMBER: _ClassVar[int]
    LEASE_NS_FIELD_NUMBER: _ClassVar[int]
    PAID_NS_FIELD_NUMBER: _ClassVar[int]
    LOG_CAP_BYTES_FIELD_NUMBER: _ClassVar[int]
    FILES_CAP_BYTES_FIELD_NUMBER: _ClassVar[int]
    AWAIT_MEMBERS_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    LISTENS_FIELD_NUMBER: _ClassVar[int]
    PEERS_FIELD_NUMBER: _ClassVar[int]
    REGISTRY_LOGIN_FIELD_NUMBER: _ClassVar[int]
    VOLUMES_FIELD_NUMBER: _ClassVar[int]
    MAY_USE_LOCAL_IMAGE_FIELD_NUMBER: _ClassVar[int]
    SEALED_ENV_FIELD_NUMBER: _ClassVar[int]
    ENTRYPOINT_FIELD_NUMBER: _ClassVar[int]
    STARTS_IN_WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    workload_id: str
    cluster_id: str
    slots: _containers.RepeatedCompositeFieldContainer[SlotGrant]
    runtime: str
    image: str
    argv: _containers.RepeatedScalarFieldContainer[str]
    env: _containers.ScalarMap[str, str]
    cpu_milli: int
    memory_bytes: int
    ports: _containers.RepeatedScalarFieldContainer[int]
    await_files: bool
    lease_ns: int
    paid_ns: int
    log_cap_bytes: int
    files_cap_bytes: int
    await_members: bool
    address: str
    listens: _containers.RepeatedScalarFieldContainer[int]
    peers: _containers.RepeatedScalarFieldContainer[str]
    registry_login: bytes
    volumes: _containers.RepeatedCompositeFieldContainer[VolumeMount]
    may_use_local_image: bool
    sealed_env: bytes
    entrypoint: str
    starts_in_workspace: bool
    def __init__(self, workload_id: _Optional[str] = ..., cluster_id: _Optional[str] = ..., slots: _Optional[_Iterable[_Union[SlotGrant, _Mapping]]] = ..., runtime: _Optional[str] = ..., image: _Optional[str] = ..., argv: _Optional[_Iterable[str]] = ..., env: _Optional[_Mapping[str, str]] = ..., cpu_milli: _Optional[int] = ..., memory_bytes: _Optional[int] = ..., ports: _Optional[_Iterable[int]] = ..., await_files: _Optional[bool] = ..., lease_ns: _Optional[int] = ..., paid_ns: _Optional[int] = ..., log_cap_bytes: _Optional[int] = ..., files_cap_bytes: _Optional[int] = ..., await_members: _Optional[bool] = ..., address: _Optional[str] = ..., listens: _Optional[_Iterable[int]] = ..., peers: _Optional[_Iterable[str]] = ..., registry_login: _Optional[bytes] = ..., volumes: _Optional[_Iterable[_Union[VolumeMount, _Mapping]]] = ..., may_use_local_image: _Optional[bool] = ..., sealed_env: _Optional[bytes] = ..., entrypoint: _Optional[str] = ..., starts_in_workspace: _Optional[bool] = ...) -> None: ...

class VolumeMount(_message.Message):
    __slots__ = ("name", "path", "read_only")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    READ_ONLY_FIELD_NUMBER: _ClassVar[int]
    name: str
    path: str
    read_only: bool
    def __init__(self, name: _Optional[str] = ..., path: _Optional[str] = ..., read_only: _Optional[bool] = ...) -> None: ...

class DeleteSpec(_message.Message):
    __slots__ = ("workload_id", "slots", "grace_ns", "keeps_files")
    WORKLOAD_ID_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    GRACE_NS_FIELD_NUMBER: _ClassVar[int]
    KEEPS_FILES_FIELD_NUMBER: _ClassVar[int]
    workload_id: str
    slots: _containers.RepeatedCompositeFieldContainer[SlotGrant]
    grace_ns: int
    keeps_files: bool
    def __init__(self, workload_id: _Optional[str] = ..., slots: _Optional[_Iterable[_Union[SlotGrant, _Mapping]]] = ..., grace_ns: _Optional[int] = ..., keeps_files: _Optional[bool] = ...) -> None: ...

class BandwidthSpec(_message.Message):
    __slots__ = ("duration_ns", "cap_bytes", "nonce", "access_ids")
    DURATION_NS_FIELD_NUMBER: _ClassVar[int]
    CAP_BYTES_FIELD_NUMBER: _ClassVar[int]
    NONCE_FIELD_NUMBER: _ClassVar[int]
    ACCESS_IDS_FIELD_NUMBER: _ClassVar[int]
    duration_ns: int
    cap_bytes: int
    nonce: str
    access_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, duration_ns: _Optional[int] = ..., cap_bytes: _Optional[int] = ..., nonce: _Optional[str] = ..., access_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class CommandStatus(_message.Message):
    __slots__ = ("command_id", "phase", "step", "progress_permille", "error_code", "error_detail", "result", "at_wall_ns")
    class ResultEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    COMMAND_ID_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_PERMILLE_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    ERROR_DETAIL_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    AT_WALL_NS_FIELD_NUMBER: _ClassVar[int]
    command_id: str
    phase: CommandPhase
    step: str
    progress_permille: int
    error_code: str
    error_detail: str
    result: _containers.ScalarMap[str, str]
    at_wall_ns: int
    def __init__(self, command_id: _Optional[str] = ..., phase: _Optional[_Union[CommandPhase, str]] = ..., step: _Optional[str] = ..., progress_permille: _Optional[int] = ..., error_code: _Optional[str] = ..., error_detail: _Optional[str] = ..., result: _Optional[_Mapping[str, str]] = ..., at_wall_ns: _Optional[int] = ...) -> None: ...

class ObservedWorkload(_message.Message):
    __slots__ = ("workload_id", "phase", "slots", "exit_code", "running_ns", "runtime", "ports", "detail", "faults")
    class PortsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class FaultsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    WORKLOAD_ID_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    RUNNING_NS_FIELD_NUMBER: _ClassVar[int]
    RUNTIME_FIELD_NUMBER: _ClassVar[int]
    PORTS_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    FAULTS_FIELD_NUMBER: _ClassVar[int]
    workload_id: str
    phase: WorkloadPhase
    slots: _containers.RepeatedCompositeFieldContainer[SlotGrant]
    exit_code: int
    running_ns: int
    runtime: str
    ports: _containers.ScalarMap[str, int]
    detail: str
    faults: _containers.ScalarMap[str, str]
    def __init__(self, workload_id: _Optional[str] = ..., phase: _Optional[_Union[WorkloadPhase, str]] = ..., slots: _Optional[_Iterable[_Union[SlotGrant, _Mapping]]] = ..., exit_code: _Optional[int] = ..., running_ns: _Optional[int] = ..., runtime: _Optional[str] = ..., ports: _Optional[_Mapping[str, int]] = ..., detail: _Optional[str] = ..., faults: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Observed(_message.Message):
    __slots__ = ("workloads", "digest", "at_wall_ns")
    WORKLOADS_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    AT_WALL_NS_FIELD_NUMBER: _ClassVar[int]
    workloads: _containers.RepeatedCompositeFieldContainer[ObservedWorkload]
    digest: bytes
    at_wall_ns: int
    def __init__(self, workloads: _Optional[_Iterable[_Union[ObservedWorkload, _Mapping]]] = ..., digest: _Optional[bytes] = ..., at_wall_ns: _Optional[int] = ...) -> None: ...

class Receipt(_message.Message):
    __slots__ = ("workload_id", "cluster_id", "slots", "number", "running_ns", "started_wall_ns", "at_wall_ns", "final", "exit_code", "end_reason")
    WORKLOAD_ID_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    RUNNING_NS_FIELD_NUMBER: _ClassVar[int]
    STARTED_WALL_NS_FIELD_NUMBER: _ClassVar[int]
    AT_WALL_NS_FIELD_NUMBER: _ClassVar[int]
    FINAL_FIELD_NUMBER: _ClassVar[int]
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    END_REASON_FIELD_NUMBER: _ClassVar[int]
    workload_id: str
    cluster_id: str
    slots: _containers.RepeatedCompositeFieldContainer[SlotGrant]
    number: int
    running_ns: int
    started_wall_ns: int
    at_wall_ns: int
    final: bool
    exit_code: int
    end_reason: str
    def __init__(self, workload_id: _Optional[str] = ..., cluster_id: _Optional[str] = ..., slots: _Optional[_Iterable[_Union[SlotGrant, _Mapping]]] = ..., number: _Optional[int] = ..., running_ns: _Optional[int] = ..., started_wall_ns: _Optional[int] = ..., at_wall_ns: _Optional[int] = ..., final: _Optional[bool] = ..., exit_code: _Optional[int] = ..., end_reason: _Optional[str] = ...) -> None: ...

class LeaseRenewal(_message.Message):
    __slots__ = ("workload_id", "lease_ns", "paid_ns", "token")
    WORKLOAD_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_NS_FIELD_NUMBER: _ClassVar[int]
    PAID_NS_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    workload_id: str
    lease_ns: int
    paid_ns: int
    token: int
    def __init__(self, workload_id: _Optional[str] = ..., lease_ns: _Optional[int] = ..., paid_ns: _Optional[int] = ..., token: _Optional[int] = ...) -> None: ...

class Leases(_message.Message):
    __slots__ = ("renewals",)
    RENEWALS_FIELD_NUMBER: _ClassVar[int]
    renewals: _containers.RepeatedCompositeFieldContainer[LeaseRenewal]
    def __init__(self, renewals: _Optional[_Iterable[_Union[LeaseRenewal, _Mapping]]] = ...) -> None: ...

class BandwidthResult(_message.Message):
    __slots__ = ("nonce", "access_id", "region", "up_bits_per_s", "down_bits_per_s", "up_bytes", "down_bytes", "duration_ns", "at_wall_ns", "access_signed", "access_signature", "rtt_ns")
    NONCE_FIELD_NUMBER: _ClassVar[int]
    ACCESS_ID_FIELD_NUMBER: _ClassVar[int]
    REGION_FIELD_NUMBER: _ClassVar[int]
    UP_BITS_PER_S_FIELD_NUMBER: _ClassVar[int]
    DOWN_BITS_PER_S_FIELD_NUMBER: _ClassVar[int]
    UP_BYTES_FIELD_NUMBER: _ClassVar[int]
    DOWN_BYTES_FIELD_NUMBER: _ClassVar[int]
    DURATION_NS_FIELD_NUMBER: _ClassVar[int]
    AT_WALL_NS_FIELD_NUMBER: _ClassVar[int]
    ACCESS_SIGNED_FIELD_NUMBER: _ClassVar[int]
    ACCESS_SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    RTT_NS_FIELD_NUMBER: _ClassVar[int]
    nonce: str
    access_id: str
    region: str
    up_bits_per_s: int
    down_bits_per_s: int
    up_bytes: int
    down_bytes: int
    duration_ns: int
    at_wall_ns: int
    access_signed: bytes
    access_signature: bytes
    rtt_ns: int
    def __init__(self, nonce: _Optional[str] = ..., access_id: _Optional[str] = ..., region: _Optional[str] = ..., up_bits_per_s: _Optional[int] = ..., down_bits_per_s: _Optional[int] = ..., up_bytes: _Optional[int] = ..., down_bytes: _Optional[int] = ..., duration_ns: _Optional[int] = ..., at_wall_ns: _Optional[int] = ..., access_signed: _Optional[bytes] = ..., access_signature: _Optional[bytes] = ..., rtt_ns: _Optional[int] = ...) -> None: ...

class BandwidthClaim(_message.Message):
    __slots__ = ("nonce", "access_id", "host_id", "up_bits_per_s", "down_bits_per_s", "up_bytes", "down_bytes", "duration_ns", "at_wall_ns")
    NONCE_FIELD_NUMBER: _ClassVar[int]
    ACCESS_ID_FIELD_NUMBER: _ClassVar[int]
    HOST_ID_FIELD_NUMBER: _ClassVar[int]
    UP_BITS_PER_S_FIELD_NUMBER: _ClassVar[int]
    DOWN_BITS_PER_S_FIELD_NUMBER: _ClassVar[int]
    UP_BYTES_FIELD_NUMBER: _ClassVar[int]
    DOWN_BYTES_FIELD_NUMBER: _ClassVar[int]
    DURATION_NS_FIELD_NUMBER: _ClassVar[int]
    AT_WALL_NS_FIELD_NUMBER: _ClassVar[int]
    nonce: str
    access_id: str
    host_id: str
    up_bits_per_s: int
    down_bits_per_s: int
    up_bytes: int
    down_bytes: int
    duration_ns: int
    at_wall_ns: int
    def __init__(self, nonce: _Optional[str] = ..., access_id: _Optional[str] = ..., host_id: _Optional[str] = ..., up_bits_per_s: _Optional[int] = ..., down_bits_per_s: _Optional[int] = ..., up_bytes: _Optional[int] = ..., down_bytes: _Optional[int] = ..., duration_ns: _Optional[int] = ..., at_wall_ns: _Optional[int] = ...) -> None: ...

class ChannelOpen(_message.Message):
    __slots__ = ("workload_id", "purpose", "argv", "offset", "follow", "changed_only", "port", "stdin", "tunnel_id", "tunnel_address", "tunnel_grant", "tunnel_digest", "cord_own", "cord_peer")
    WORKLOAD_ID_FIELD_NUMBER: _ClassVar[int]
    PURPOSE_FIELD_NUMBER: _ClassVar[int]
    ARGV_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    FOLLOW_FIELD_NUMBER: _ClassVar[int]
    CHANGED_ONLY_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    STDIN_FIELD_NUMBER: _ClassVar[int]
    TUNNEL_ID_FIELD_NUMBER: _ClassVar[int]
    TUNNEL_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    TUNNEL_GRANT_FIELD_NUMBER: _ClassVar[int]
    TUNNEL_DIGEST_FIELD_NUMBER: _ClassVar[int]
    CORD_OWN_FIELD_NUMBER: _ClassVar[int]
    CORD_PEER_FIELD_NUMBER: _ClassVar[int]
    workload_id: str
    purpose: ChannelPurpose
    argv: _containers.RepeatedScalarFieldContainer[str]
    offset: int
    follow: bool
    changed_only: bool
    port: int
    stdin: bool
    tunnel_id: str
    tunnel_address: str
    tunnel_grant: str
    tunnel_digest: bytes
    cord_own: str
    cord_peer: str
    def __init__(self, workload_id: _Optional[str] = ..., purpose: _Optional[_Union[ChannelPurpose, str]] = ..., argv: _Optional[_Iterable[str]] = ..., offset: _Optional[int] = ..., follow: _Optional[bool] = ..., changed_only: _Optional[bool] = ..., port: _Optional[int] = ..., stdin: _Optional[bool] = ..., tunnel_id: _Optional[str] = ..., tunnel_address: _Optional[str] = ..., tunnel_grant: _Optional[str] = ..., tunnel_digest: _Optional[bytes] = ..., cord_own: _Optional[str] = ..., cord_peer: _Optional[str] = ...) -> None: ...

class ChannelData(_message.Message):
    __slots__ = ("stream", "data")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    stream: int
    data: bytes
    def __init__(self, stream: _Optional[int] = ..., data: _Optional[bytes] = ...) -> None: ...

class ChannelClose(_message.Message):
    __slots__ = ("error_code", "detail", "exit_code", "commit", "truncated", "bytes_in", "bytes_out")
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    COMMIT_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    BYTES_IN_FIELD_NUMBER: _ClassVar[int]
    BYTES_OUT_FIELD_NUMBER: _ClassVar[int]
    error_code: str
    detail: str
    exit_code: int
    commit: bool
    truncated: bool
    bytes_in: int
    bytes_out: int
    def __init__(self, error_code: _Optional[str] = ..., detail: _Optional[str] = ..., exit_code: _Optional[int] = ..., commit: _Optional[bool] = ..., truncated: _Optional[bool] = ..., bytes_in: _Optional[int] = ..., bytes_out: _Optional[int] = ...) -> None: ...

class Channel(_message.Message):
    __slots__ = ("channel_id", "open", "data", "credit_bytes", "close")
    CHANNEL_ID_FIELD_NUMBER: _ClassVar[int]
    OPEN_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    CREDIT_BYTES_FIELD_NUMBER: _ClassVar[int]
    CLOSE_FIELD_NUMBER: _ClassVar[int]
    channel_id: int
    open: ChannelOpen
    data: ChannelData
    credit_bytes: int
    close: ChannelClose
    def __init__(self, channel_id: _Optional[int] = ..., open: _Optional[_Union[ChannelOpen, _Mapping]] = ..., data: _Optional[_Union[ChannelData, _Mapping]] = ..., credit_bytes: _Optional[int] = ..., close: _Optional[_Union[ChannelClose, _Mapping]] = ...) -> None: ...
