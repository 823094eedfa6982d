/* What only newer drivers export, as a part of fake_nvml.c: the fabric, repairs of memory, and the counters of a card's
 * parts (GPM). A sample is what they were, a metric the share of the time between two; `fake_samples`: not freed yet.
 */
typedef struct {
    unsigned version; unsigned char cluster[16]; int status; unsigned clique, state, health;
} fabric_t;
EXPORT int nvmlDeviceGetGpuFabricInfoV(void *handle, fabric_t *out) {
    ENTER; out->state = gpu->fabric; return gpu->fabric ? SUCCESS : NOT_SUPPORTED;
}
typedef struct { unsigned version; unsigned long long counts[11]; unsigned is_exceeded; } sram_t;
EXPORT int nvmlDeviceGetSramEccErrorStatus(void *handle, sram_t *out) {
    ENTER; return figure(gpu->sram_exceeded, &out->is_exceeded);
}
typedef struct { unsigned version, is_unrepairable; } repair_t;
EXPORT int nvmlDeviceGetUnrepairableMemoryFlag_v1(void *handle, repair_t *out) {
    ENTER; return figure(gpu->unrepairable, &out->is_unrepairable);
}

static int samples;
EXPORT int fake_samples(void) { return samples; }
typedef struct { const gpu_t *of; uint64_t elapsed, busy[GPM]; } gpm_sample_t;
typedef struct { unsigned version, is_supported; } gpm_support_t;
typedef struct { unsigned id; int code; double value; const char *names[3]; } gpm_metric_t;
typedef struct { unsigned version, count; gpm_sample_t *before, *after; gpm_metric_t metrics[]; } gpm_get_t;
EXPORT int nvmlGpmQueryDeviceSupport(void *handle, gpm_support_t *out) { ENTER;
    out->is_supported = gpu->gpm_elapsed != 0;
    return SUCCESS;
}
EXPORT int nvmlGpmSampleAlloc(gpm_sample_t **out) { samples++; *out = calloc(1, sizeof **out); return SUCCESS; }
EXPORT int nvmlGpmSampleFree(gpm_sample_t *sample) { samples--; free(sample); return SUCCESS; }
EXPORT int nvmlGpmSampleGet(void *handle, gpm_sample_t *sample) { ENTER;
    if (!gpu->gpm_elapsed) return NOT_SUPPORTED;
    *sample = (gpm_sample_t){gpu, gpu->gpm_elapsed, {0}};
    memcpy(sample->busy, gpu->gpm_busy, sizeof sample->busy);
    return SUCCESS;
}
EXPORT int nvmlGpmMetricsGet(gpm_get_t *get) {
    const gpm_sample_t *a = get->before, *b = get->after;
    if (get->version != 1) return ARGUMENT_VERSION_MISMATCH;
    if (!a->of || a->of != b->of || b->elapsed <= a->elapsed) return INVALID_ARGUMENT; /* in their order in time */
    for (unsigned i = 0; i < get->count; i++) {
        gpm_metric_t *one = &get->metrics[i];
        one->code = one->id < GPM ? SUCCESS : NOT_SUPPORTED;
        if (one->id < GPM) one->value = 100.0 * (b->busy[one->id] - a->busy[one->id]) / (b->elapsed - a->elapsed);
    }
    return SUCCESS;
}
