/* A stand-in for NVIDIA's libcuda.so.1: cards whose memory is the host's, and whose copies take virtual time.

   FAKE_CUDA_CARDS   UUID@BUS of each card, separated by commas
   FAKE_CUDA_RATE    bytes that a card reads and writes per second
   FAKE_CUDA_FAULT   "idle": copies on a card do nothing, and say that they did; "full": a card has no free memory

   Codes are those of cuda.h. What a real driver refuses is refused here: tests/contract/test_cuda.py holds both to it. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))
#define CARDS 16
#define BLOCKS 64
#define EVENTS 64
#define MEMORY (1ull << 30)

enum { OK = 0, INVALID = 1, NO_MEMORY = 2, NOT_INITIALIZED = 3, NO_DEVICE = 100, NO_CARD = 101, 
       NO_CONTEXT = 201, BAD_HANDLE = 400 };

typedef struct { char uuid[48]; char bus[32]; } Card;
typedef struct { unsigned char *at; size_t size; } Block;
typedef struct { int is_used, is_recorded; double at_ms; } Event;

static Card cards[CARDS];
static Block blocks[BLOCKS];
static Event events[EVENTS];
static int count, is_ready, current = -1;
static double clock_ms;

static int fault(const char *name) {
    const char *given = getenv("FAKE_CUDA_FAULT");
    return given && !strcmp(given, name);
}

static int state(void) { return !is_ready ? NOT_INITIALIZED : current < 0 ? NO_CONTEXT : OK; }

/* The block that holds all of this span; NULL where there is none. */
static Block *holding(uint64_t place, size_t size) {
    for (int i = 0; i < BLOCKS; i++) {
        uint64_t begin = (uint64_t)(uintptr_t)blocks[i].at;
        if (begin && place >= begin && size <= blocks[i].size && place - begin <= blocks[i].size - size)
            return &blocks[i];
    }
    return NULL;
}

static size_t used(void) {
    size_t sum = 0;
    for (int i = 0; i < BLOCKS; i++) sum += blocks[i].at ? blocks[i].size : 0;
    return sum;
}

API int cuInit(unsigned flags) {
    if (flags) return INVALID;
    const char *given = getenv("FAKE_CUDA_CARDS");
    count = 0;
    while (given && *given && count < CARDS) {
        Card *card = &cards[count];
        if (sscanf(given, "%47[^@]@%31[^,]", card->uuid, card->bus) == 2) count++;
        given = strchr(given, ',');
        if (given) given++;
    }
    if (!count) return NO_DEVICE;
    is_ready = 1;
    return OK;
}

API int cuDeviceGetCount(int *found) {
    if (!is_ready) return NOT_INITIALIZED;
    *found = count;
    return OK;
}

API int cuDeviceGet(int *device, int index) {
    if (!is_ready) return NOT_INITIALIZED;
    if (index < 0 || index >= count) return NO_CARD;
    *device = index;
    return OK;
}

API int cuDeviceGetUuid(unsigned char *out, int device) {
    if (!is_ready) return NOT_INITIALIZED;
    if (device < 0 || device >= count) return NO_CARD;
    const char *text = cards[device].uuid + strlen("GPU-");
    for (int i = 0; i < 16; i++) {
        unsigned byte;
        if (*text == '-') text++;
        if (sscanf(text, "%2x", &byte) != 1) return INVALID;
        out[i] = (unsigned char)byte;
        text += 2;
    }
    return OK;
}

API int cuDeviceGetPCIBusId(char *out, int length, int device) {
    if (!is_ready) return NOT_INITIALIZED;
    if (device < 0 || device >= count) return NO_CARD;
    snprintf(out, (size_t)length, "%s", cards[device].bus);
    return OK;
}

API int cuDeviceGetName(char *out, int length, int device) {
    if (!is_ready) return NOT_INITIALIZED;
    if (device < 0 || device >= count) return NO_CARD;
    snprintf(out, (size_t)length, "%s", "a card that is none");
    return OK;
}

API int cuDevicePrimaryCtxRetain(void **context, int device) {
    if (!is_ready) return NOT_INITIALIZED;
    if (device < 0 || device >= count) return NO_CARD;
    *context = &cards[device];
    return OK;
}

API int cuDevicePrimaryCtxRelease_v2(int device) {
    if (!is_ready) return NOT_INITIALIZED;
    if (device < 0 || device >= count) return NO_CARD;
    current = -1;
    return OK;
}

API int cuCtxSetCurrent(void *context) {
    if (!is_ready) return NOT_INITIALIZED;
    current = context ? (int)((Card *)context - cards) : -1;
    return OK;
}

API int cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
    if (state()) return state();
    *total = MEMORY;
    *free_bytes = fault("full") ? 0 : MEMORY - used();
    return OK;
}

API int cuMemAlloc_v2(uint64_t *place, size_t size) {
    if (state()) return state();
    if (!size) return INVALID;
    for (int i = 0; i < BLOCKS; i++)
        if (!blocks[i].at) {
            blocks[i].at = size <= MEMORY - used() ? malloc(size) : NULL;
            if (!blocks[i].at) return NO_MEMORY;
            blocks[i].size = size;
            *place = (uint64_t)(uintptr_t)blocks[i].at;
            return OK;
        }
    return NO_MEMORY;
}

API int cuMemFree_v2(uint64_t place) {
    if (state()) return state();
    Block *block = holding(place, 1);
    if (!block || (uint64_t)(uintptr_t)block->at != place) return INVALID;
    free(block->at);
    block->at = NULL;
    return OK;
}

API int cuMemsetD32_v2(uint64_t place, unsigned word, size_t words) {
    if (state()) return state();
    if (!holding(place, words * 4)) return INVALID;
    uint32_t *at = (uint32_t *)(uintptr_t)place;
    for (size_t i = 0; i < words; i++) at[i] = word;
    return OK;
}

API int cuMemcpyDtoH_v2(void *out, uint64_t place, size_t size) {
    if (state()) return state();
    if (!holding(place, size)) return INVALID;
    memcpy(out, (void *)(uintptr_t)place, size);
    return OK;
}

API int cuMemcpyDtoDAsync_v2(uint64_t target, uint64_t source, size_t size, void *stream) {
    if (state()) return state();
    if (stream) return BAD_HANDLE;
    if (!holding(target, size) || !holding(source, size)) return INVALID;
    const char *rate = getenv("FAKE_CUDA_RATE");
    clock_ms += 2.0 * (double)size / (rate ? atof(rate) : 1e12) * 1000.0;
    if (!fault("idle")) memmove((void *)(uintptr_t)target, (void *)(uintptr_t)source, size);
    return OK;
}

API int cuEventCreate(void **event, unsigned flags) {
    if (state()) return state();
    if (flags) return INVALID;
    for (int i = 0; i < EVENTS; i++)
        if (!events[i].is_used) {
            events[i] = (Event){.is_used = 1};
            *event = &events[i];
            return OK;
        }
    return NO_MEMORY;
}

API int cuEventRecord(void *event, void *stream) {
    if (state()) return state();
    if (!event || stream) return BAD_HANDLE;
    ((Event *)event)->is_recorded = 1;
    ((Event *)event)->at_ms = clock_ms;
    return OK;
}

API int cuEventSynchronize(void *event) {
    if (state()) return state();
    return event ? OK : BAD_HANDLE;
}

API int cuEventElapsedTime(float *ms, void *begun, void *ended) {
    if (state()) return state();
    const Event *first = begun, *last = ended;
    if (!first || !last || !first->is_recorded || !last->is_recorded) return BAD_HANDLE;
    *ms = (float)(last->at_ms - first->at_ms);
    return OK;
}
