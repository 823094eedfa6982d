/* Slices of a card, as a part of fake_nvml.c: the profiles of an 80 GB H100, and the codes that nvml.h names.
 *
 * A slot of `slices` is a GPU instance; with its one compute instance it is a device of its own. Memory is eight parts.
 */
typedef struct { const char *name; unsigned id, slices, parts, most, processors; unsigned long long memory_mb; } profile_t;
static const profile_t profiles[] = { /* in the order of nvml.h's numbers: 1, 2, 3, 4 and 7 slices */
    {"1g.10gb", 19, 1, 1, 7, 16, 9984}, {"2g.20gb", 14, 2, 2, 3, 32, 20096}, {"3g.40gb", 9, 3, 4, 2, 60, 40448},
    {"4g.40gb", 5, 4, 4, 1, 64, 40448}, {"7g.80gb", 0, 7, 8, 1, 132, 81152},
};
#define MIG_PROFILES (sizeof profiles / sizeof *profiles)
static char instances[GPUS][MIG_DEVICES], computes[GPUS][MIG_DEVICES]; /* whose addresses are handles */

static const profile_t *profile_of(const slice_t *slice) { return &profiles[slice->profile - 1]; }
static slice_t *slice_at(gpu_t *gpu, void *handle) { /* NULL: it is the card's own handle */
    unsigned at = slice_of(handle);
    return at && gpu->slices[at - 1].profile ? &gpu->slices[at - 1] : NULL;
}
static inline unsigned programs_of(gpu_t *gpu, void *handle) {
    unsigned found = 0;
    for (unsigned i = 0; i < MIG_DEVICES; i++)
        if (!slice_of(handle) || slice_of(handle) == i + 1) found += gpu->slices[i].programs;
    return found;
}

EXPORT int nvmlDeviceGetName(void *handle, char *out, unsigned size) { ENTER;
    const slice_t *slice = slice_at(gpu, handle);
    if (slice) return snprintf(out, size, "%s MIG %s", gpu->name, profile_of(slice)->name), SUCCESS;
    return copy(out, size, gpu->name);
}
EXPORT int nvmlDeviceGetUUID(void *handle, char *out, unsigned size) { ENTER;
    const slice_t *slice = slice_at(gpu, handle);
    if (slice) return snprintf(out, size, "MIG-%08x%s", slice->profile << 8 | slice->start, gpu->uuid + 12), SUCCESS;
    return copy(out, size, gpu->uuid);
}
EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(void *handle, unsigned index, void **out) { ENTER;
    for (unsigned i = 0; gpu->mig_mode == 1 && i < MIG_DEVICES; i++)
        if (gpu->slices[i].is_whole && !index--) { *out = (char *)handle + 1 + i; return SUCCESS; }
    return NOT_FOUND;
}
EXPORT int nvmlDeviceGetGpuInstanceId(void *handle, unsigned *out) { ENTER;
    if (!slice_at(gpu, handle)) return NOT_SUPPORTED;
    *out = slice_of(handle); /* from 1, so that nobody takes a missing one for the first */
    return SUCCESS;
}
EXPORT int nvmlDeviceGetComputeInstanceId(void *handle, unsigned *out) { ENTER;
    if (!slice_at(gpu, handle)) return NOT_SUPPORTED;
    *out = 0;
    return SUCCESS;
}
typedef struct { unsigned processors, shared[5], slices, compute_slices; unsigned long long memory_mb; } attributes_t;
EXPORT int nvmlDeviceGetAttributes_v2(void *handle, attributes_t *out) { ENTER;
    const slice_t *slice = slice_at(gpu, handle);
    if (!slice) return NOT_SUPPORTED;
    const profile_t *profile = profile_of(slice);
    *out = (attributes_t){profile->processors, {0}, profile->slices, profile->slices, profile->memory_mb};
    return SUCCESS;
}
EXPORT int nvmlDeviceSetMigMode(void *handle, unsigned wanted, unsigned *status) { ENTER;
    if (gpu->mig_mode == ABSENT) return NOT_SUPPORTED;
    if (gpu->mig_denied) return NO_PERMISSION;
    if (wanted > 1) return INVALID_ARGUMENT;
    int is_used = gpu->process_count > 0;
    for (unsigned i = 0; i < MIG_DEVICES; i++) is_used |= gpu->slices[i].profile != 0;
    gpu->mig_pending = wanted;
    *status = wanted == gpu->mig_mode ? SUCCESS : is_used ? IN_USE : (int)gpu->mig_status;
    if (!*status) gpu->mig_mode = wanted;
    return SUCCESS;
}

typedef struct {
    unsigned version, id, is_p2p, slices, instances, processors, engines[5];
    unsigned long long memory_mb;
    char name[96];
} instance_profile_t;
EXPORT int nvmlDeviceGetGpuInstanceProfileInfoV(void *handle, unsigned number, instance_profile_t *out) { ENTER;
    if (gpu->mig_mode == ABSENT) return NOT_SUPPORTED;
    if (number >= MIG_PROFILES) return NOT_SUPPORTED;
    const profile_t *profile = &profiles[number];
    unsigned version = out->version;
    memset(out, 0, sizeof *out);
    out->version = version, out->id = profile->id, out->slices = profile->slices, out->instances = profile->most;
    out->processors = profile->processors, out->memory_mb = profile->memory_mb;
    snprintf(out->name, sizeof out->name, "MIG %s", profile->name);
    return SUCCESS;
}
EXPORT int nvmlDeviceCreateGpuInstance(void *handle, unsigned id, void **out) { ENTER;
    if (gpu->mig_mode != 1) return NOT_SUPPORTED;
    if (gpu->mig_denied) return NO_PERMISSION;
    unsigned number = 0, taken = 0, slot = MIG_DEVICES, count = 0, computing = 0;
    while (number < MIG_PROFILES && profiles[number].id != id) number++;
    if (number == MIG_PROFILES) return INVALID_ARGUMENT;
    const profile_t *profile = &profiles[number];
    for (unsigned i = MIG_DEVICES; i-- > 0;) {
        const slice_t *slice = &gpu->slices[i];
        if (!slice->profile) { slot = i; continue; }
        taken |= ((1u << profile_of(slice)->parts) - 1) << slice->start;
        computing += profile_of(slice)->slices;
        count += slice->profile == number + 1;
    }
    unsigned start = 0, mask = (1u << profile->parts) - 1;
    while (start + profile->parts <= 8 && taken & mask << start) start += profile->parts;
    if (slot == MIG_DEVICES || count == profile->most || start + profile->parts > 8 || computing + profile->slices > 7)
        return INSUFFICIENT_RESOURCES;
    gpu->slices[slot] = (slice_t){number + 1, start, 0, 0, 0};
    *out = &instances[gpu - state->gpus][slot];
    return SUCCESS;
}

/* Of the handle of an instance, or of the compute instance on it, and the call's entry on its card. */
static slice_t *instance(void *handle, char (*all)[MIG_DEVICES], gpu_t **gpu, int *code) {
    long at = (char *)handle - all[0];
    *code = at < 0 || at >= GPUS * MIG_DEVICES ? INVALID_ARGUMENT : enter(handles[at / MIG_DEVICES], gpu);
    slice_t *slice = *code ? NULL : &(*gpu)->slices[at % MIG_DEVICES];
    if (slice && !slice->profile) *code = INVALID_ARGUMENT;
    return slice;
}
#define INSTANCE(all) gpu_t *gpu; int code; slice_t *slice = instance(handle, all, &gpu, &code); if (code) return code

EXPORT int nvmlDeviceGetGpuInstances(void *handle, unsigned id, void **out, unsigned *count) { ENTER;
    *count = 0;
    for (unsigned i = 0; i < MIG_DEVICES; i++)
        if (gpu->slices[i].profile && profile_of(&gpu->slices[i])->id == id)
            out[(*count)++] = &instances[gpu - state->gpus][i];
    return SUCCESS;
}
EXPORT int nvmlGpuInstanceDestroy(void *handle) { INSTANCE(instances);
    if (gpu->mig_denied) return NO_PERMISSION;
    if (slice->is_whole || slice->programs) return IN_USE;
    slice->profile = 0;
    return SUCCESS;
}
typedef struct {
    unsigned version, id, slices, instances, processors, shared[5];
    char name[96];
} compute_profile_t;
EXPORT int nvmlGpuInstanceGetComputeInstanceProfileInfoV(
    void *handle, unsigned number, unsigned engines, compute_profile_t *out) { INSTANCE(instances);
    if (engines) return INVALID_ARGUMENT;
    if (number >= MIG_PROFILES || profiles[number].slices > profile_of(slice)->slices) return NOT_SUPPORTED;
    out->id = number, out->slices = profiles[number].slices;
    out->instances = profile_of(slice)->slices / out->slices;
    return SUCCESS;
}
EXPORT int nvmlGpuInstanceCreateComputeInstance(void *handle, unsigned id, void **out) { INSTANCE(instances);
    if (gpu->mig_denied) return NO_PERMISSION;
    if (id >= MIG_PROFILES) return INVALID_ARGUMENT;
    if (slice->is_whole || profiles[id].slices != profile_of(slice)->slices) return INSUFFICIENT_RESOURCES;
    slice->is_whole = 1;
    *out = &computes[gpu - state->gpus][slice - gpu->slices];
    return SUCCESS;
}
EXPORT int nvmlGpuInstanceGetComputeInstances(void *handle, unsigned id, void **out, unsigned *count) {
    INSTANCE(instances);
    *count = slice->is_whole && profiles[id].slices == profile_of(slice)->slices;
    if (*count) out[0] = &computes[gpu - state->gpus][slice - gpu->slices];
    return SUCCESS;
}
EXPORT int nvmlComputeInstanceDestroy(void *handle) { INSTANCE(computes);
    if (gpu->mig_denied) return NO_PERMISSION;
    if (slice->programs) return IN_USE;
    slice->is_whole = 0;
    return SUCCESS;
}
