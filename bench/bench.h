#pragma once
/* What the parts of the benchmark share: measure.c samples and prints, peers.c runs programs as
 * others do, engine.c drives box/host/box.h. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SAMPLES_MAX = 4096 };

/* One row of the table: samples in microseconds. */
struct row {
	const char *what; /* the operation, as printed */
	const char *who;
	double us[SAMPLES_MAX];
	size_t n;
	bool absent; /* not on this machine, or it refuses it */
};

double now_us(void);
void sample(struct row *r, double us);
double percentile(struct row *r, double p); /* 0 to 1 */

/* Waits, 50 ms at most, until nothing else wants to run. */
void wait_quiet(void);

/* Memory that the machine could still give out, in bytes. */
uint64_t mem_available(void);

_Noreturn void die(const char *what);

/* ---- peers.c ---- */

struct peer {
	const char *name;
	const char *const *argv; /* runs /bin/true; NULL: by vfork, /bin/true itself */
	const char *const *idle; /* sleeps; NULL: not measured */
};
extern const struct peer peers[];
extern const size_t n_peers;

void peers_init(void); /* the bundle for crun */
void peers_fini(void);
/* Runs argv to its end, output thrown away: its time, or -1 when it failed. */
double run_peer(const char *const *argv, bool by_vfork);
/* n at once: the time of each. */
void run_peers_at_once(const char *const *argv, size_t n, double *ret_us);
int start_peer(const char *const *argv); /* ends with this process */
void stop_peer(int pid);

/* ---- engine.c ---- */

void engine_init(const char *libexec);
void engine_fini(void);

struct cycle {
	double create, exec, destroy;
};
struct cycle cold_cycle(bool root); /* no pool; with root inside or without */
struct cycle pool_cycle(void); /* from a pool that is full again before it returns */
double live_exec(bool root);
double wake_exec(void); /* in one that sleeps */
double fork_dirty(unsigned mib); /* an idle sandbox with that many MiB written since its creation */
void burst(size_t n, double *ret_us); /* creates at once; ended before it returns */
double sustained(size_t n); /* creates with destroys, 16 under way: how many a second */
void idle_sandboxes(size_t n); /* makes them, and leaves them */
void idle_asleep(void); /* they sleep */
