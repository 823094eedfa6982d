/* A stand-in for libnvidia-ml.so.1, for tests only.
 *
 * Everything it answers stands in one C struct in the file that FAKE_NVML_STATE names, mapped shared: a test writes the
 * same bytes and all processes see them. tests/fake_nvml/state.py is the mirror. -DOLD_DRIVER: no exports since R535.
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define MAGIC 0x57464e56u
#define GPUS 16
#define PROCESSES 8
#define EVENTS 64
#define LOOK_MS 200 /* events wake a waiting thread; a card is seen to be lost by looking, and that cost is the fake's own */
#define ABSENT 0xFFFFFFFFu /* in a 32-bit figure: this card does not support it */
#define FIELDS 308         /* field ids of nvmlDeviceGetFieldValues, whose values stand in `field` */
#define ABSENT64 (~0ull)
#define MIG_DEVICES 7
#define GPM 14

enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6,
       INSUFFICIENT_SIZE = 7, DRIVER_NOT_LOADED = 9, TIMEOUT = 10, GPU_IS_LOST = 15, IN_USE = 19,
       INSUFFICIENT_RESOURCES = 23, ARGUMENT_VERSION_MISMATCH = 25 };

typedef struct { uint32_t pid, is_graphics; uint64_t memory; } process_t;
typedef struct { uint32_t profile, start, is_whole, programs; uint64_t memory_used; } slice_t; /* profile 0: none */

typedef struct {
    char name[96], uuid[80], bus_id[32], serial[32], vbios[32];
    uint32_t pci_device, pci_subsystem, capability_major, capability_minor;
    uint32_t lost, fault, calls, process_count;
    uint64_t memory_total, memory_used, memory_reserved, energy_mj, throttle, ecc_uncorrected;
    uint64_t temperature_read_ns; /* wall clock at which this temperature was first asked for */
    uint32_t temperature, temperature_read, memory_temperature, slowdown, power_mw, power_limit_mw, power_limit_max_mw;
    uint32_t utilization, memory_utilization, clock_sm, clock_memory, clock_sm_max, clock_memory_max;
    uint32_t performance_state, fan, pcie_replays, pcie_generation, pcie_width;
    uint32_t cores, bus_bits, ecc_mode, mig_mode, mig_pending, numa_node, minor;
    uint32_t remap_correctable, remap_uncorrectable, remap_pending, remap_failed, event_types;
    process_t processes[PROCESSES];
    char board_part[32], inforom[32], gsp[32];
    uint64_t pdi, bar1, cpus[2], field[FIELDS];
    uint32_t brand, architecture, compute_mode, persistence, virtualization, ecc_pending, shutdown, memory_max, gpu_max;
    uint32_t clock_video, clock_video_max, pcie_generation_now, pcie_width_now, encoder, decoder;
    uint32_t links_up, link_version, fabric, nearness, p2p, sram_exceeded, unrepairable, mig_max;
    uint32_t mig_denied, mig_status; /* every change NO_PERMISSION; what a change of the mode ends with, and waits for */
    slice_t slices[MIG_DEVICES];
    uint64_t gpm_elapsed, gpm_busy[GPM]; /* counters by metric, in one unit; elapsed 0: the card has none */
} gpu_t;

typedef struct { uint32_t gpu, type; uint64_t value; uint32_t gpu_instance, compute_instance; } event_t;

typedef struct {
    uint32_t magic, gpu_count, init_code, delay_us, hang, cuda, event_head, hanging;
    char driver[80];
    event_t events[EVENTS];
    gpu_t gpus[GPUS];
} state_t;

static state_t *state;
static unsigned references;
static char handles[GPUS][1 + MIG_DEVICES]; /* of a card, then of its slices */

EXPORT unsigned fake_sizeof(int what) {
    return what == 0 ? sizeof(state_t) : what == 1 ? sizeof(gpu_t) : sizeof(event_t);
}

static int map_state(void) {
    const char *path = getenv("FAKE_NVML_STATE");
    int file = path ? open(path, O_RDWR) : -1;
    if (file < 0) return DRIVER_NOT_LOADED;
    void *bytes = mmap(NULL, sizeof(state_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (bytes == MAP_FAILED || ((state_t *)bytes)->magic != MAGIC) return DRIVER_NOT_LOADED;
    state = bytes; /* an older mapping stays: a thread may still hang in it */
    return SUCCESS;
}

/* Every call on a card comes through here: a slow, a hanging, a lost and a faulty card look so in all of them. */
static int enter(void *handle, gpu_t **gpu) {
    if (!references) return UNINITIALIZED;
    state_t *held = state;
    if (held->delay_us) usleep(held->delay_us);
    if (held->hang) {
        __atomic_add_fetch(&held->hanging, 1, __ATOMIC_SEQ_CST);
        while (*(volatile uint32_t *)&held->hang) usleep(1000);
        __atomic_sub_fetch(&held->hanging, 1, __ATOMIC_SEQ_CST);
    }
    long index = ((char *)handle - handles[0]) / (1 + MIG_DEVICES);
    if (index < 0 || index >= (long)held->gpu_count) return INVALID_ARGUMENT;
    *gpu = &held->gpus[index];
    (*gpu)->calls++;
    return (*gpu)->lost ? GPU_IS_LOST : (int)(*gpu)->fault;
}
#define ENTER gpu_t *gpu; int code = enter(handle, &gpu); if (code) return code

static int copy(char *out, unsigned size, const char *text) {
    if (strlen(text) + 1 > size) return INSUFFICIENT_SIZE;
    strcpy(out, text);
    return SUCCESS;
}

static int figure(uint32_t value, unsigned *out) {
    if (value == ABSENT) return NOT_SUPPORTED;
    *out = value;
    return SUCCESS;
}
#define FIGURE(call, member) EXPORT int call(void *handle, unsigned *out) { ENTER; return figure(gpu->member, out); }
#define FIGURE64(call, member) \
    EXPORT int call(void *handle, unsigned long long *out) { ENTER; *out = gpu->member; return SUCCESS; }
#define TEXT(call, member) EXPORT int call(void *handle, char *out, unsigned size) { \
    ENTER; return gpu->member[0] ? copy(out, size, gpu->member) : NOT_SUPPORTED; }

EXPORT const char *nvmlErrorString(int code) {
    switch (code) {
    case NOT_SUPPORTED: return "Not Supported";
    case DRIVER_NOT_LOADED: return "Driver Not Loaded";
    case TIMEOUT: return "Timeout";
    case GPU_IS_LOST: return "GPU is lost";
    default: return "an error of the fake";
    }
}

EXPORT int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    int code = references ? SUCCESS : map_state();
    if (!code) code = (int)state->init_code;
    if (!code && state->hang) { gpu_t *unused; references++; enter(handles[0], &unused); references--; }
    if (!code) references++;
    return code;
}
EXPORT int nvmlShutdown(void) { if (!references) return UNINITIALIZED; references--; return SUCCESS; }

EXPORT int nvmlSystemGetDriverVersion(char *out, unsigned size) {
    return references ? copy(out, size, state->driver) : UNINITIALIZED;
}
EXPORT int nvmlSystemGetCudaDriverVersion_v2(int *out) {
    if (!references) return UNINITIALIZED;
    *out = (int)state->cuda;
    return SUCCESS;
}
EXPORT int nvmlSystemGetNVMLVersion(char *out, unsigned size) {
    return references ? copy(out, size, "13.580.95.05") : UNINITIALIZED;
}
typedef struct { unsigned environment, feature, tools; } confidential_t;
EXPORT int nvmlSystemGetConfComputeState(confidential_t *out) {
    if (!references) return UNINITIALIZED;
    *out = (confidential_t){0, 0, 0};
    return SUCCESS;
}
EXPORT int nvmlDeviceGetCount_v2(unsigned *out) {
    if (!references) return UNINITIALIZED;
    *out = state->gpu_count;
    return SUCCESS;
}
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **out) {
    if (!references) return UNINITIALIZED;
    if (index >= state->gpu_count) return INVALID_ARGUMENT;
    if (state->gpus[index].lost) return GPU_IS_LOST;
    *out = handles[index];
    return SUCCESS;
}
static unsigned slice_of(void *handle) { return ((char *)handle - handles[0]) % (1 + MIG_DEVICES); } /* 0: the card */
#include "fake_mig.c"
EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, void **out) {
    if (!references) return UNINITIALIZED;
    for (unsigned i = 0; i < state->gpu_count; i++)
        if (!strcmp(uuid, state->gpus[i].uuid)) {
            if (state->gpus[i].lost) return GPU_IS_LOST;
            *out = handles[i];
            return SUCCESS;
        }
    return NOT_FOUND;
}

TEXT(nvmlDeviceGetBoardPartNumber, board_part)
TEXT(nvmlDeviceGetInforomImageVersion, inforom)
EXPORT int nvmlDeviceGetGspFirmwareVersion(void *handle, char *out) {
    ENTER; return gpu->gsp[0] ? copy(out, sizeof gpu->gsp, gpu->gsp) : NOT_SUPPORTED;
}
FIGURE(nvmlDeviceGetBrand, brand)
FIGURE(nvmlDeviceGetArchitecture, architecture)
FIGURE(nvmlDeviceGetComputeMode, compute_mode)
FIGURE(nvmlDeviceGetPersistenceMode, persistence)
FIGURE(nvmlDeviceGetCurrPcieLinkGeneration, pcie_generation_now)
FIGURE(nvmlDeviceGetCurrPcieLinkWidth, pcie_width_now)
FIGURE(nvmlDeviceGetMaxMigDeviceCount, mig_max)
FIGURE64(nvmlDeviceGetVirtualizationMode, virtualization)
TEXT(nvmlDeviceGetSerial, serial)
TEXT(nvmlDeviceGetVbiosVersion, vbios)
FIGURE(nvmlDeviceGetEnforcedPowerLimit, power_limit_mw)
FIGURE(nvmlDeviceGetPowerUsage, power_mw)
FIGURE(nvmlDeviceGetMaxPcieLinkGeneration, pcie_generation)
FIGURE(nvmlDeviceGetMaxPcieLinkWidth, pcie_width)
FIGURE(nvmlDeviceGetNumGpuCores, cores)
FIGURE(nvmlDeviceGetMemoryBusWidth, bus_bits)
FIGURE(nvmlDeviceGetMinorNumber, minor)
FIGURE(nvmlDeviceGetNumaNodeId, numa_node)
FIGURE(nvmlDeviceGetPcieReplayCounter, pcie_replays)
FIGURE(nvmlDeviceGetPerformanceState, performance_state)
FIGURE(nvmlDeviceGetFanSpeed, fan)
FIGURE64(nvmlDeviceGetTotalEnergyConsumption, energy_mj)
FIGURE64(nvmlDeviceGetCurrentClocksThrottleReasons, throttle)

typedef struct { char legacy[16]; unsigned domain, bus, device, device_id, subsystem_id; char bus_id[32]; } pci_t;
EXPORT int nvmlDeviceGetPciInfo_v3(void *handle, pci_t *out) { ENTER;
    memset(out, 0, sizeof *out);
    strcpy(out->bus_id, gpu->bus_id);
    if (strlen(gpu->bus_id) > 4) strncpy(out->legacy, gpu->bus_id + 4, sizeof out->legacy - 1);
    sscanf(gpu->bus_id, "%x:%x:%x", &out->domain, &out->bus, &out->device);
    out->device_id = gpu->pci_device;
    out->subsystem_id = gpu->pci_subsystem;
    return SUCCESS;
}

EXPORT int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *handle, unsigned link, pci_t *out) { ENTER;
    if (link >= gpu->links_up) return INVALID_ARGUMENT;
    memset(out, 0, sizeof *out);
    snprintf(out->bus_id, sizeof out->bus_id, "00000000:%02X:00.0", 5 + link % 4); /* four switches */
    return SUCCESS;
}

typedef struct { unsigned long long total, free, used; } memory_v1_t;
EXPORT int nvmlDeviceGetMemoryInfo(void *handle, memory_v1_t *out) { ENTER;
    const slice_t *slice = slice_at(gpu, handle);
    out->total = slice ? profile_of(slice)->memory_mb << 20 : gpu->memory_total;
    out->used = slice ? slice->memory_used : gpu->memory_used + gpu->memory_reserved;
    out->free = out->total - out->used;
    return SUCCESS;
}

EXPORT int nvmlDeviceGetTemperature(void *handle, int sensor, unsigned *out) { ENTER;
    uint32_t now = gpu->temperature;
    if (!sensor && now != gpu->temperature_read) {
        struct timespec wall;
        clock_gettime(CLOCK_REALTIME, &wall);
        gpu->temperature_read_ns = (uint64_t)wall.tv_sec * 1000000000u + (uint64_t)wall.tv_nsec;
        gpu->temperature_read = now;
    }
    return sensor ? INVALID_ARGUMENT : figure(now, out);
}
EXPORT int nvmlDeviceGetTemperatureThreshold(void *handle, int kind, unsigned *out) { ENTER;
    const uint32_t thresholds[] = {gpu->shutdown, gpu->slowdown, gpu->memory_max, gpu->gpu_max};
    return kind >= 0 && kind < 4 && thresholds[kind] ? figure(thresholds[kind], out) : NOT_SUPPORTED;
}
typedef struct { unsigned version; unsigned long long value; } pdi_t;
EXPORT int nvmlDeviceGetPdi(void *handle, pdi_t *out) {
    ENTER; out->value = gpu->pdi; return gpu->pdi ? SUCCESS : NOT_SUPPORTED;
}
typedef struct { unsigned long long total, free, used; } bar1_t;
EXPORT int nvmlDeviceGetBAR1MemoryInfo(void *handle, bar1_t *out) {
    ENTER; out->total = out->free = gpu->bar1; out->used = 0; return gpu->bar1 ? SUCCESS : NOT_SUPPORTED;
}
EXPORT int nvmlDeviceGetCpuAffinity(void *handle, unsigned size, unsigned long *out) { ENTER;
    if (size < 2 || !(gpu->cpus[0] | gpu->cpus[1])) return NOT_SUPPORTED;
    memset(out, 0, size * sizeof *out);
    memcpy(out, gpu->cpus, sizeof gpu->cpus);
    return SUCCESS;
}
static int media(uint32_t value, unsigned *out, unsigned *period_us) { *period_us = 167000; return figure(value, out); }
EXPORT int nvmlDeviceGetEncoderUtilization(void *handle, unsigned *out, unsigned *period) {
    ENTER; return media(gpu->encoder, out, period);
}
EXPORT int nvmlDeviceGetDecoderUtilization(void *handle, unsigned *out, unsigned *period) {
    ENTER; return media(gpu->decoder, out, period);
}
EXPORT int nvmlDeviceGetTopologyCommonAncestor(void *handle, void *other, int *out) {
    ENTER; (void)other; return figure(gpu->nearness, (unsigned *)out);
}
EXPORT int nvmlDeviceGetP2PStatus(void *handle, void *other, int what, int *out) {
    ENTER; (void)other, (void)what; return figure(gpu->p2p, (unsigned *)out);
}
EXPORT int nvmlDeviceGetNvLinkState(void *handle, unsigned link, unsigned *out) {
    ENTER; *out = link < gpu->links_up; return link < gpu->field[91] ? SUCCESS : INVALID_ARGUMENT;
}
EXPORT int nvmlDeviceGetNvLinkVersion(void *handle, unsigned link, unsigned *out) {
    ENTER; *out = gpu->link_version; return link < gpu->field[91] ? SUCCESS : INVALID_ARGUMENT;
}
EXPORT int nvmlDeviceGetUtilizationRates(void *handle, unsigned *out) { ENTER;
    if (gpu->mig_mode == 1 || gpu->utilization == ABSENT) return NOT_SUPPORTED;
    out[0] = gpu->utilization;
    out[1] = gpu->memory_utilization;
    return SUCCESS;
}
EXPORT int nvmlDeviceGetClockInfo(void *handle, int kind, unsigned *out) { ENTER;
    return figure(kind == 2 ? gpu->clock_memory : kind == 3 ? gpu->clock_video : gpu->clock_sm, out);
}
EXPORT int nvmlDeviceGetMaxClockInfo(void *handle, int kind, unsigned *out) { ENTER;
    return figure(kind == 2 ? gpu->clock_memory_max : kind == 3 ? gpu->clock_video_max : gpu->clock_sm_max, out);
}
EXPORT int nvmlDeviceGetPowerManagementLimitConstraints(void *handle, unsigned *low, unsigned *high) { ENTER;
    *low = 0;
    return figure(gpu->power_limit_max_mw, high);
}
EXPORT int nvmlDeviceGetCudaComputeCapability(void *handle, int *major, int *minor) { ENTER;
    *major = (int)gpu->capability_major;
    *minor = (int)gpu->capability_minor;
    return SUCCESS;
}
static int mode(uint32_t value, uint32_t later, unsigned *current, unsigned *pending) {
    *pending = later;
    return figure(value, current);
}
EXPORT int nvmlDeviceGetEccMode(void *handle, unsigned *now, unsigned *later) { ENTER;
    return mode(gpu->ecc_mode, gpu->ecc_pending, now, later);
}
EXPORT int nvmlDeviceGetMigMode(void *handle, unsigned *now, unsigned *later) { ENTER;
    return mode(gpu->mig_mode, gpu->mig_pending, now, later);
}
EXPORT int nvmlDeviceGetTotalEccErrors(void *handle, int kind, int counter, unsigned long long *out) { ENTER;
    if (gpu->ecc_mode != 1) return NOT_SUPPORTED;
    *out = kind == 1 && counter == 0 ? gpu->ecc_uncorrected : 0;
    return SUCCESS;
}
EXPORT int nvmlDeviceGetRemappedRows(void *handle, unsigned *good, unsigned *bad, unsigned *pending, unsigned *failed) {
    ENTER;
    *good = gpu->remap_correctable;
    *bad = gpu->remap_uncorrectable;
    *failed = gpu->remap_failed;
    return figure(gpu->remap_pending, pending);
}

#ifndef OLD_DRIVER
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory_v2_t;
EXPORT int nvmlDeviceGetMemoryInfo_v2(void *handle, memory_v2_t *out) { ENTER;
    if (out->version != (unsigned)(sizeof *out | 2u << 24)) return ARGUMENT_VERSION_MISMATCH;
    const slice_t *slice = slice_at(gpu, handle);
    out->total = slice ? profile_of(slice)->memory_mb << 20 : gpu->memory_total;
    out->reserved = slice ? 0 : gpu->memory_reserved;
    out->used = slice ? slice->memory_used : gpu->memory_used;
    out->free = out->total - out->reserved - out->used;
    return SUCCESS;
}
FIGURE64(nvmlDeviceGetCurrentClocksEventReasons, throttle)

typedef struct { unsigned pid; unsigned long long memory; unsigned gpu_instance, compute_instance; } process_info_t;
static int list_processes(void *handle, unsigned *count, process_info_t *out, uint32_t is_graphics) { ENTER;
    unsigned found = 0;
    for (unsigned i = 0; !is_graphics && i < programs_of(gpu, handle); i++, found++)
        if (out && found < *count) out[found] = (process_info_t){9000 + i, 1 << 30, 1, 0};
    for (unsigned i = 0; !slice_of(handle) && i < gpu->process_count && i < PROCESSES; i++) {
        if (gpu->processes[i].is_graphics != is_graphics) continue;
        if (out && found < *count)
            out[found] = (process_info_t){gpu->processes[i].pid, gpu->processes[i].memory, ABSENT, ABSENT};
        found++;
    }
    int fits = !found || (out && found <= *count);
    *count = found;
    return fits ? SUCCESS : INSUFFICIENT_SIZE;
}
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned *count, process_info_t *out) {
    return list_processes(handle, count, out, 0);
}
EXPORT int nvmlDeviceGetGraphicsRunningProcesses_v3(void *handle, unsigned *count, process_info_t *out) {
    return list_processes(handle, count, out, 1);
}

typedef struct {
    uint32_t id, scope;
    int64_t at_us, latency_us;
    uint32_t type, code;
    union { double d; uint32_t u32; uint64_t u64; } value;
} field_t;
static void answer_field(const gpu_t *gpu, field_t *field) {
    uint32_t value = ABSENT;
    field->type = 1;
    switch (field->id) {
    case 82: value = gpu->memory_temperature; break;
    case 83: field->type = 3; field->value.u64 = gpu->energy_mj; field->code = SUCCESS; return;
    case 94: value = gpu->pcie_replays; break;
    case 144: value = gpu->remap_pending; break;
    case 145: value = gpu->remap_pending == ABSENT ? ABSENT : gpu->remap_failed; break;
    case 186: value = gpu->power_mw; break;
    default:
        field->type = 3;
        field->value.u64 = field->id < FIELDS ? gpu->field[field->id] : ABSENT64;
        field->code = field->value.u64 == ABSENT64 ? NOT_SUPPORTED : SUCCESS;
        return;
    }
    field->value.u64 = 0;
    field->code = value == ABSENT ? NOT_SUPPORTED : SUCCESS;
    if (!field->code) field->value.u32 = value;
}
EXPORT int nvmlDeviceGetFieldValues(void *handle, int count, field_t *fields) { ENTER;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    for (int i = 0; i < count; i++) {
        fields[i].at_us = now.tv_sec * 1000000ll + now.tv_nsec / 1000;
        fields[i].latency_us = 1;
        answer_field(gpu, &fields[i]);
    }
    return SUCCESS;
}

#include "fake_new.c"
#endif

typedef struct { uint32_t tail; uint64_t wanted[GPUS]; } event_set_t;
EXPORT int nvmlEventSetCreate(event_set_t **out) {
    if (!references) return UNINITIALIZED;
    *out = calloc(1, sizeof **out);
    (*out)->tail = __atomic_load_n(&state->event_head, __ATOMIC_ACQUIRE);
    return SUCCESS;
}
EXPORT int nvmlEventSetFree(event_set_t *set) { free(set); return SUCCESS; }
EXPORT int nvmlDeviceGetSupportedEventTypes(void *handle, unsigned long long *out) { ENTER;
    *out = gpu->event_types;
    return SUCCESS;
}
EXPORT int nvmlDeviceRegisterEvents(void *handle, unsigned long long types, event_set_t *set) { ENTER;
    if (types & ~(unsigned long long)gpu->event_types) return NOT_SUPPORTED;
    set->wanted[gpu - state->gpus] |= types;
    return SUCCESS;
}
typedef struct { void *device; unsigned long long type, value; unsigned gpu_instance, compute_instance; } event_data_t;
EXPORT int nvmlEventSetWait_v2(event_set_t *set, event_data_t *out, unsigned timeout_ms) {
    for (unsigned waited = 0;; waited += LOOK_MS) {
        uint32_t head = __atomic_load_n(&state->event_head, __ATOMIC_ACQUIRE);
        while (set->tail != head) {
            const event_t *event = &state->events[set->tail++ % EVENTS];
            if (event->gpu >= GPUS || !(set->wanted[event->gpu] & event->type)) continue;
            *out = (event_data_t){
                handles[event->gpu], event->type, event->value, event->gpu_instance, event->compute_instance};
            return SUCCESS;
        }
        for (unsigned i = 0; i < GPUS; i++)
            if (set->wanted[i] && state->gpus[i].lost) return GPU_IS_LOST; /* one lost card ends the wait for all */
        if (waited >= timeout_ms) return TIMEOUT;
        struct timespec span = {0, (timeout_ms - waited < LOOK_MS ? timeout_ms - waited : LOOK_MS) * 1000000l};
        syscall(SYS_futex, &state->event_head, FUTEX_WAIT, head, &span, NULL, 0); /* returns at once if head moved */
    }
}
