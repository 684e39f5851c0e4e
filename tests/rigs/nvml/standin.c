/* A stand-in for libnvidia-ml.so.1: answers what a text file says (its lines are told in rig.py).
 *
 * Layouts of the structures follow what the vendor's Python binding declares; nothing else is taken from it.
 * The file is read again whenever it changed, so a test changes the machine under a running reader.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { OK = 0, UNINITIALIZED = 1, INVALID = 2, NOT_SUPPORTED = 3, SMALL = 7, TIMEOUT = 10, WRONG_VERSION = 25 };
enum { GPUS = 16, FIELDS = 320, SCOPES = 38, ALL = 37, RULES = 64, EVENTS = 32, PUTS = 24, NUMBERS = 8 };

typedef struct { int type, code; double grow; union { uint64_t u; int64_t s; double d; } value; } Value;
typedef struct { char name[56]; int error; int delay; } Rule;
typedef struct { char name[24]; int count; uint64_t v[NUMBERS]; char text[96]; } Put;
typedef struct { uint64_t id, type, data; } Event;
typedef struct {
    Value fields[FIELDS][SCOPES];
    Rule rules[RULES]; int n_rules;
    Put puts[PUTS]; int n_puts;
    Event events[EVENTS]; int n_events;
    int remote[SCOPES]; char remote_pci[SCOPES][32];
    uint64_t told, registered; /* events given so far, and their kinds */
} Gpu;
typedef struct { uint32_t field, scope; int64_t time, latency; uint32_t type, code; uint64_t value; } Entry;
typedef struct { char legacy[16]; uint32_t domain, bus, device, id, subsystem; char bus_id[32]; } Pci;
typedef struct { void *device; uint64_t type, data; uint32_t gi, ci; } EventData;
typedef struct { uint32_t version; uint64_t total, reserved, free, used; } Memory;
typedef struct { uint32_t version, sensor; int32_t celsius; } Temperature;
typedef struct {
    uint32_t version; uint8_t uuid[16]; uint32_t status, clique; uint8_t state[4]; uint32_t health; uint8_t summary;
} Fabric;
typedef struct { uint32_t version; char guid[16], serial[16]; uint8_t place[5]; } Platform;

static Gpu gpus[GPUS], everybody;
static int n_gpus, count_said, is_static, inits, chunk;
static long reload, reload_seen, reload_code;
static struct timespec mtime, born; static ino_t inode; /* born: when NVML was opened first, or after a reload */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct { const char *name; long calls; } tally[64];
static long entries_asked;

static void set_field(Gpu *g, char *id, char *scope, char *type, char *number) {
    static const char *types[] = {"double", "uint", "ulong", "ull", "sll", "int", "ushort"};
    int field = atoi(id), first = 0, last = ALL, kind = 3;
    Value v = {0};
    if (!strcmp(scope, "all")) first = ALL;
    else if (strcmp(scope, "*")) { if (sscanf(scope, "%d-%d", &first, &last) < 2) last = first; }
    if (!strcmp(type, "error")) v.code = atoi(number);
    else for (kind = 0; kind < 7 && strcmp(types[kind], type); kind++) {}
    v.type = kind;
    if (kind == 0) v.value.d = atof(number);
    else if (kind == 4 || kind == 5) v.value.s = atoll(number);
    else v.value.u = strtoull(number, NULL, 0);
    for (int s = first; s <= last && field < FIELDS && s < SCOPES; s++) g->fields[field][s] = v;
}

static void set_growth(Gpu *g, char *id, char *scope, char *per_second) {
    int field = atoi(id) % FIELDS, first = atoi(scope), last = first;
    if (!strcmp(scope, "*")) first = 0, last = ALL;
    for (int s = first; s <= last && s < SCOPES; s++) g->fields[field][s].grow = atof(per_second);
}

static double age(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - born.tv_sec) + (double)(now.tv_nsec - born.tv_nsec) / 1e9;
}

static void forget(Gpu *g) {
    uint64_t told = g->told, registered = g->registered;
    memset(g, 0, sizeof *g);
    g->told = told, g->registered = registered;
    for (int f = 0; f < FIELDS; f++) for (int s = 0; s < SCOPES; s++) g->fields[f][s].code = NOT_SUPPORTED;
    for (int s = 0; s < SCOPES; s++) g->remote[s] = -1;
}

static Rule *rule(Gpu *g, const char *name) {
    for (int i = 0; i < g->n_rules; i++) if (!strcmp(g->rules[i].name, name)) return &g->rules[i];
    Rule *r = &g->rules[g->n_rules < RULES - 1 ? g->n_rules++ : RULES - 1];
    snprintf(r->name, sizeof r->name, "%s", name);
    return r;
}

static void parse(char *line) {
    static Gpu *g;
    char *save = NULL, *w[12] = {0}, rest[128] = "";
    size_t length = strcspn(line, "\n");
    line[length] = 0;
    char *gap = strchr(line, ' ');
    gap = gap ? strchr(gap + 1, ' ') : NULL;
    if (gap) snprintf(rest, sizeof rest, "%s", gap + 1);
    int n = 0;
    for (char *p = strtok_r(line, " ", &save); p && n < 12; p = strtok_r(NULL, " ", &save)) w[n++] = p;
    if (!n || w[0][0] == '#') return;
    if (!strcmp(w[0], "begin")) g = &everybody;
    else if (!strcmp(w[0], "static")) is_static = 1;
    else if (n < 2) return;
    else if (!strcmp(w[0], "gpu")) {
        int i = atoi(w[1]) % GPUS;
        g = &gpus[i];
        if (i >= n_gpus) n_gpus = i + 1;
    } else if (!strcmp(w[0], "count")) count_said = atoi(w[1]);
    else if (!strcmp(w[0], "chunk")) chunk = atoi(w[1]);
    else if (!strcmp(w[0], "reload")) reload = atol(w[1]), reload_code = n > 2 ? atol(w[2]) : UNINITIALIZED;
    else if (!strcmp(w[0], "field") && n == 5) set_field(g, w[1], w[2], w[3], w[4]);
    else if (!strcmp(w[0], "grow") && n == 4) set_growth(g, w[1], w[2], w[3]);
    else if (!strcmp(w[0], "error") && n == 3) rule(g, w[1])->error = atoi(w[2]);
    else if (!strcmp(w[0], "delay") && n == 3) rule(g, w[1])->delay = atoi(w[2]);
    else if (!strcmp(w[0], "remote") && n >= 3) {
        int link = atoi(w[1]) % SCOPES;
        g->remote[link] = atoi(w[2]);
        if (n > 3) snprintf(g->remote_pci[link], 32, "%s", w[3]);
    } else if (!strcmp(w[0], "event") && n == 4 && g->n_events < EVENTS)
        g->events[g->n_events++] = (Event){strtoull(w[1], 0, 0), strtoull(w[2], 0, 0), strtoull(w[3], 0, 0)};
    else if ((!strcmp(w[0], "put") || !strcmp(w[0], "text")) && g->n_puts < PUTS) {
        Put *p = &g->puts[g->n_puts++];
        snprintf(p->name, sizeof p->name, "%s", w[1]);
        snprintf(p->text, sizeof p->text, "%s", rest);
        for (int i = 2; i < n && w[0][0] == 'p' && i - 2 < NUMBERS; i++) p->v[p->count++] = strtoull(w[i], 0, 0);
    }
}

static int read_script(int anyway) {
    const char *path = getenv("NVML_STANDIN_SCRIPT");
    struct stat now;
    if (!path || stat(path, &now)) return 9; /* as if no driver were loaded */
    if (!anyway && now.st_ino == inode && !memcmp(&now.st_mtim, &mtime, sizeof mtime)) return OK;
    FILE *f = fopen(path, "r");
    if (!f) return 9;
    inode = now.st_ino, mtime = now.st_mtim;
    n_gpus = is_static = chunk = 0, count_said = -1;
    forget(&everybody);
    for (int i = 0; i < GPUS; i++) forget(&gpus[i]);
    char line[512] = "begin";
    do parse(line); while (fgets(line, sizeof line, f));
    fclose(f);
    return OK;
}

/* Every call begins here: counts it, waits as long as the file says, and returns with the lock held. */
static int begin(const char *name, Gpu *g) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < 64; i++) {
        if (tally[i].name && tally[i].name != name && strcmp(tally[i].name, name)) continue;
        tally[i].name = name; /* always a literal */
        tally[i].calls++;
        break;
    }
    for (int waited = 0;; waited += 5) {
        int code = is_static && inits ? OK : read_script(0);
        if (code) return code;
        int delay = everybody.n_rules ? rule(&everybody, name)->delay : 0;
        if (g && g->n_rules && rule(g, name)->delay > delay) delay = rule(g, name)->delay;
        if (waited >= delay) break;
        pthread_mutex_unlock(&lock);
        nanosleep(&(struct timespec){0, 5000000}, NULL);
        pthread_mutex_lock(&lock);
    }
    int init = !strncmp(name, "nvmlInit", 8);
    if (!init && !inits) return UNINITIALIZED;
    if (!init && reload != reload_seen) return (int)reload_code;
    if (everybody.n_rules && rule(&everybody, name)->error) return rule(&everybody, name)->error;
    if (g && g->n_rules && rule(g, "*")->error) return rule(g, "*")->error;
    return g && g->n_rules ? rule(g, name)->error : OK;
}

static int end(int code) { pthread_mutex_unlock(&lock); return code; }
static Put *put(Gpu *g, const char *name) {
    for (int i = 0; i < g->n_puts; i++) if (!strcmp(g->puts[i].name, name)) return &g->puts[i];
    return NULL;
}
static int text(const char *call, Gpu *g, const char *name, char *out, unsigned size) {
    int code = begin(call, g);
    Put *p = put(g, name);
    if (!code && !p) code = NOT_SUPPORTED;
    if (!code && strlen(p->text) >= size) code = SMALL;
    if (!code) strcpy(out, p->text);
    return end(code);
}
static int number(const char *call, Gpu *g, const char *name, int at, uint64_t *out) {
    int code = begin(call, g);
    Put *p = put(g, name);
    if (!code && (!p || at >= p->count)) code = NOT_SUPPORTED;
    if (!code) *out = p->v[at];
    return end(code);
}
static int number32(const char *call, Gpu *g, const char *name, int at, uint32_t *out) {
    uint64_t v = 0;
    int code = number(call, g, name, at, &v);
    if (!code) *out = (uint32_t)v;
    return code;
}
static void fill_pci(Pci *p, const char *bus_id) {
    memset(p, 0, sizeof *p);
    sscanf(bus_id, "%x:%x:%x", &p->domain, &p->bus, &p->device);
    snprintf(p->bus_id, sizeof p->bus_id, "%s", bus_id);
    snprintf(p->legacy, sizeof p->legacy, "%.15s", strlen(bus_id) > 12 ? bus_id + 4 : bus_id);
}

int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    int code = begin("nvmlInit", NULL);
    if (!code) code = read_script(1);
    if (!code && (!inits || reload != reload_seen)) clock_gettime(CLOCK_MONOTONIC, &born);
    if (!code) inits++, reload_seen = reload;
    return end(code);
}
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) {
    int code = begin("nvmlShutdown", NULL);
    if (inits && --inits == 0) for (int i = 0; i < GPUS; i++) gpus[i].registered = 0;
    return end(inits || code != UNINITIALIZED ? OK : code);
}
const char *nvmlErrorString(int code) {
    static char out[32];
    const char *known = code == 15 ? "GPU is lost" : code == 16 ? "GPU requires reset" : NULL;
    snprintf(out, sizeof out, "stand-in error %d", code);
    return known ? known : out;
}
int nvmlSystemGetDriverVersion(char *out, unsigned size) {
    return text("nvmlSystemGetDriverVersion", &everybody, "driver", out, size);
}
int nvmlDeviceGetCount_v2(unsigned *out) {
    int code = begin("nvmlDeviceGetCount", NULL);
    *out = (unsigned)(count_said >= 0 ? count_said : n_gpus);
    return end(code);
}
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **out) {
    if (i >= GPUS) return INVALID;
    int code = begin("nvmlDeviceGetHandleByIndex", &gpus[i]);
    if (!code) *out = &gpus[i];
    return end(code);
}
int nvmlDeviceGetUUID(Gpu *g, char *out, unsigned n) { return text("nvmlDeviceGetUUID", g, "uuid", out, n); }
int nvmlDeviceGetName(Gpu *g, char *out, unsigned n) { return text("nvmlDeviceGetName", g, "name", out, n); }
int nvmlDeviceGetSerial(Gpu *g, char *out, unsigned n) { return text("nvmlDeviceGetSerial", g, "serial", out, n); }
int nvmlDeviceGetBoardPartNumber(Gpu *g, char *out, unsigned n) {
    return text("nvmlDeviceGetBoardPartNumber", g, "part", out, n);
}
int nvmlDeviceGetPciInfo_v3(Gpu *g, Pci *out) {
    char id[96];
    int code = text("nvmlDeviceGetPciInfo", g, "pci", id, sizeof id);
    if (!code) fill_pci(out, id);
    return code;
}
int nvmlDeviceGetUtilizationRates(Gpu *g, uint32_t out[2]) {
    int code = number32("nvmlDeviceGetUtilizationRates", g, "utilization", 0, &out[0]);
    if (!code) out[1] = 0;
    return code;
}
int nvmlDeviceGetMemoryInfo(Gpu *g, uint64_t out[3]) { /* its `used` holds what is reserved as well */
    uint64_t reserved = 0;
    int code = number("nvmlDeviceGetMemoryInfo", g, "memory", 0, &out[0]);
    if (!code) number("memory", g, "memory", 1, &reserved);
    if (!code) number("memory", g, "memory", 2, &out[1]), number("memory", g, "memory", 3, &out[2]);
    if (!code) out[2] += reserved;
    return code;
}
int nvmlDeviceGetTemperature(Gpu *g, int sensor, uint32_t *out) {
    return sensor ? INVALID : number32("nvmlDeviceGetTemperature", g, "temperature", 0, out);
}
int nvmlDeviceGetPowerUsage(Gpu *g, uint32_t *out) { return number32("nvmlDeviceGetPowerUsage", g, "power", 0, out); }
int nvmlDeviceGetEnforcedPowerLimit(Gpu *g, uint32_t *out) {
    return number32("nvmlDeviceGetEnforcedPowerLimit", g, "limit", 0, out);
}
int nvmlDeviceGetClockInfo(Gpu *g, int kind, uint32_t *out) {
    return kind < 0 || kind > 3 ? INVALID : number32("nvmlDeviceGetClockInfo", g, kind == 1 ? "clock" : "other", 0, out);
}
int nvmlDeviceGetCurrentClocksThrottleReasons(Gpu *g, uint64_t *out) {
    return number("nvmlDeviceGetCurrentClocksThrottleReasons", g, "reasons", 0, out);
}
/* put other N: for what other tools ask besides */
static int other(const char *call, Gpu *g, uint32_t *out) { return number32(call, g, "other", 0, out); }
int nvmlDeviceGetFanSpeed(Gpu *g, uint32_t *out) { return other("nvmlDeviceGetFanSpeed", g, out); }
int nvmlDeviceGetDisplayActive(Gpu *g, uint32_t *out) { return other("nvmlDeviceGetDisplayActive", g, out); }
int nvmlDeviceGetDisplayMode(Gpu *g, uint32_t *out) { return other("nvmlDeviceGetDisplayMode", g, out); }
int nvmlDeviceGetPersistenceMode(Gpu *g, uint32_t *out) { return other("nvmlDeviceGetPersistenceMode", g, out); }
int nvmlDeviceGetPerformanceState(Gpu *g, uint32_t *out) { return other("nvmlDeviceGetPerformanceState", g, out); }
int nvmlDeviceGetComputeMode(Gpu *g, uint32_t *out) { return other("nvmlDeviceGetComputeMode", g, out); }
int nvmlDeviceGetMaxClockInfo(Gpu *g, int kind, uint32_t *out) {
    (void)kind;
    return other("nvmlDeviceGetMaxClockInfo", g, out);
}
int nvmlDeviceGetPcieThroughput(Gpu *g, int counter, uint32_t *out) { /* a real one blocks for 20 ms */
    (void)counter;
    return other("nvmlDeviceGetPcieThroughput", g, out);
}
int nvmlDeviceGetEncoderUtilization(Gpu *g, uint32_t *out, uint32_t *period) {
    *period = 0;
    return other("nvmlDeviceGetEncoderUtilization", g, out);
}
int nvmlDeviceGetDecoderUtilization(Gpu *g, uint32_t *out, uint32_t *period) {
    *period = 0;
    return other("nvmlDeviceGetDecoderUtilization", g, out);
}
int nvmlDeviceGetCudaComputeCapability(Gpu *g, int *major, int *minor) {
    *minor = 0;
    return other("nvmlDeviceGetCudaComputeCapability", g, (uint32_t *)major);
}
int nvmlDeviceGetDriverModel(Gpu *g, uint32_t *current, uint32_t *pending) { /* Windows alone has one */
    (void)current, (void)pending;
    int code = begin("nvmlDeviceGetDriverModel", g);
    return end(code ? code : NOT_SUPPORTED);
}
int nvmlDeviceGetPowerManagementLimit(Gpu *g, uint32_t *out) {
    return number32("nvmlDeviceGetPowerManagementLimit", g, "limit", 0, out);
}
int nvmlDeviceGetTotalEccErrors(Gpu *g, int kind, int counter, uint64_t *out) {
    (void)kind, (void)counter;
    return number("nvmlDeviceGetTotalEccErrors", g, "other", 0, out);
}
int nvmlDeviceGetMigMode(Gpu *g, uint32_t *current, uint32_t *pending) {
    int code = number32("nvmlDeviceGetMigMode", g, "mig", 0, current);
    *pending = *current;
    return code;
}
int nvmlDeviceGetNvLinkState(Gpu *g, unsigned link, uint32_t *out) {
    int code = begin("nvmlDeviceGetNvLinkState", g);
    Value *v = &g->fields[165][link < ALL ? link : 0];
    if (!code) code = v->code;
    *out = v->value.u != 0;
    return end(code);
}
int nvmlDeviceGetNvLinkRemoteDeviceType(Gpu *g, unsigned link, uint32_t *out) {
    int code = begin("nvmlDeviceGetNvLinkRemoteDeviceType", g);
    if (!code && (link >= ALL || g->remote[link] < 0)) code = NOT_SUPPORTED;
    if (!code) *out = (uint32_t)g->remote[link];
    return end(code);
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(Gpu *g, unsigned link, Pci *out) {
    int code = begin("nvmlDeviceGetNvLinkRemotePciInfo", g);
    if (!code && (link >= ALL || !g->remote_pci[link][0])) code = NOT_SUPPORTED;
    if (!code) fill_pci(out, g->remote_pci[link]);
    return end(code);
}
int nvmlDeviceGetFieldValues(Gpu *g, int n, Entry *e) {
    int code = begin("nvmlDeviceGetFieldValues", g);
    if (!code && chunk && n > chunk) code = INVALID;
    entries_asked += n;
    for (int i = 0; !code && i < n; i++) {
        if (e[i].field >= FIELDS) { e[i].code = INVALID; continue; }
        int scope = e[i].scope == UINT32_MAX ? ALL : (int)e[i].scope;
        Value *v = &g->fields[e[i].field][scope < SCOPES ? scope : 0];
        e[i].code = scope < SCOPES ? (uint32_t)v->code : INVALID;
        e[i].type = (uint32_t)v->type;
        uint64_t value = v->value.u + (v->grow ? (uint64_t)(v->grow * age()) : 0);
        memcpy(&e[i].value, &value, v->type == 1 || v->type == 5 ? 4 : v->type == 6 ? 2 : 8);
        e[i].time = 1, e[i].latency = 0; /* a narrow value leaves what was in the other bytes, as a union does */
    }
    return end(code);
}
#ifndef OLD_LIBRARY
int nvmlDeviceGetCurrentClocksEventReasons(Gpu *g, uint64_t *out) {
    return number("nvmlDeviceGetCurrentClocksEventReasons", g, "reasons", 0, out);
}
int nvmlDeviceGetMemoryInfo_v2(Gpu *g, Memory *out) {
    if (out->version != 0x02000028) return WRONG_VERSION;
    int code = number("nvmlDeviceGetMemoryInfo_v2", g, "memory", 3, &out->used);
    if (!code) number("memory", g, "memory", 0, &out->total);
    return code;
}
int nvmlDeviceGetTemperatureV(Gpu *g, Temperature *out) {
    return out->version != 0x100000C
        ? WRONG_VERSION : number32("nvmlDeviceGetTemperatureV", g, "temperature", 0, (uint32_t *)&out->celsius);
}
/* put fabric STATE STATUS CLIQUE HEALTH SUMMARY UUID-HIGH UUID-LOW */
int nvmlDeviceGetGpuFabricInfoV(Gpu *g, Fabric *out) {
    int code = begin("nvmlDeviceGetGpuFabricInfoV", g);
    Put *p = put(g, "fabric"), *newest = put(&everybody, "fabric_version");
    unsigned version = out->version >> 24;
    if (!code && (version < 2 || version > (newest ? newest->v[0] : 3))) code = WRONG_VERSION;
    if (!code && (!p || p->count < 7)) code = NOT_SUPPORTED;
    if (code) return end(code);
    for (int i = 0; i < 16; i++) out->uuid[i] = (uint8_t)(p->v[5 + i / 8] >> (56 - 8 * (i % 8)));
    out->status = (uint32_t)p->v[1], out->clique = (uint32_t)p->v[2], out->health = (uint32_t)p->v[3];
    memset(out->state, 0, 4), out->state[0] = (uint8_t)p->v[0];
    if (version > 2) out->summary = (uint8_t)p->v[4];
    return end(code);
}
/* put platform SLOT TRAY HOST PEER MODULE; text chassis SERIAL */
int nvmlDeviceGetPlatformInfo(Gpu *g, Platform *out) {
    int code = begin("nvmlDeviceGetPlatformInfo", g);
    Put *p = put(g, "platform"), *serial = put(g, "chassis");
    if (!code && out->version != 0x200002c) code = WRONG_VERSION;
    if (!code && !p) code = NOT_SUPPORTED;
    if (code) return end(code);
    memset(out->guid, 0, 32);
    if (serial) memcpy(out->serial, serial->text, strnlen(serial->text, 16));
    for (int i = 0; i < 5; i++) out->place[i] = (uint8_t)p->v[i];
    return end(code);
}
#endif
int nvmlEventSetCreate(void **out) {
    int code = begin("nvmlEventSetCreate", NULL);
    if (!code) *out = &tally;
    return end(code);
}
int nvmlEventSetFree(void *set) { (void)set; return end(begin("nvmlEventSetFree", NULL)); }
int nvmlDeviceGetSupportedEventTypes(Gpu *g, uint64_t *out) {
    return number("nvmlDeviceGetSupportedEventTypes", g, "events", 0, out);
}
int nvmlDeviceRegisterEvents(Gpu *g, uint64_t kinds, void *set) {
    (void)set;
    int code = begin("nvmlDeviceRegisterEvents", g);
    if (!code && !put(g, "events")) code = NOT_SUPPORTED;
    if (!code) g->registered = kinds;
    for (int i = 0; !code && i < g->n_events; i++) if (g->events[i].id > g->told) g->told = g->events[i].id;
    return end(code);
}
int nvmlEventSetWait_v2(void *set, EventData *out, unsigned timeout) {
    (void)set, (void)timeout;
    int code = begin("nvmlEventSetWait", NULL);
    for (int i = 0; !code && i < n_gpus; i++)
        for (int k = 0; k < gpus[i].n_events; k++) {
            Event *e = &gpus[i].events[k];
            if (e->id <= gpus[i].told || !(e->type & gpus[i].registered)) continue;
            gpus[i].told = e->id;
            *out = (EventData){&gpus[i], e->type, e->data, 0, 0};
            return end(OK);
        }
    return end(code ? code : TIMEOUT);
}

/* Not of NVML: what a test asks of the stand-in. */
long standin_calls(const char *name) {
    for (int i = 0; i < 64 && tally[i].name; i++) if (!strcmp(tally[i].name, name)) return tally[i].calls;
    return 0;
}
long standin_open(void) { return inits; }
long standin_entries(void) { return entries_asked; }
void standin_reset(void) {
    pthread_mutex_lock(&lock);
    memset(tally, 0, sizeof tally), entries_asked = inits = 0, reload = reload_seen = 0, inode = 0;
    for (int i = 0; i < GPUS; i++) gpus[i].told = gpus[i].registered = 0;
    pthread_mutex_unlock(&lock);
}
