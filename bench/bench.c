/*
 * Sandboxes beside their peers: bench LIBEXEC HOLT N. Every operation and every peer takes its turn
 * in each of N rounds, so that what else the machine does hits all alike; the ratios are to fork +
 * exec of /bin/true in the same run. Prints Markdown.
 *
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { WIDE = 16, DIRTY_MIB = 100, IDLE_PEERS = 100, IDLE_MANY = 1000, SUSTAINED = 512 };

enum {
	COLD,
	COLD_CREATE,
	COLD_EXEC,
	DESTROY,
	POOL_FIRST,
	POOL_CREATE,
	LIVE,
	WAKE,
	FORK,
	BURST,
	WHOLE,
	ROOT_COLD,
	ROOT_LIVE,
	OURS
};

static struct row ours[OURS] = {
	[COLD] = { .what = "create, run `true`, destroy; no pool", .who = "holt" },
	[COLD_CREATE] = { .what = "— of it create", .who = "holt" },
	[COLD_EXEC] = { .what = "— of it the first exec", .who = "holt" },
	[DESTROY] = { .what = "— of it destroy", .who = "holt" },
	[POOL_FIRST] = { .what = "from the pool: create to the end of the first exec",
			 .who = "holt" },
	[POOL_CREATE] = { .what = "— of it create", .who = "holt" },
	[LIVE] = { .what = "exec in a live sandbox", .who = "holt" },
	[WAKE] = { .what = "exec in one that sleeps", .who = "holt" },
	[FORK] = { .what = "fork of an idle sandbox with 100 MB dirty", .who = "holt" },
	[BURST] = { .what = "16 creates at once, each", .who = "holt" },
	[WHOLE] = { .what = "`holt run -- true`, the whole process", .who = "holt" },
	[ROOT_COLD] = { .what = "root inside: create, run `true`, destroy", .who = "holt" },
	[ROOT_LIVE] = { .what = "root inside: exec in a live sandbox", .who = "holt" },
};

static struct row theirs[8], at_once[8];

static void round_of(const char *holt, size_t i)
{
	const char *const whole[] = { holt, "run", "--", "/bin/true", NULL };
	struct cycle c;

	for (size_t k = 0; k < n_peers; k++) {
		wait_quiet();
		sample(&theirs[k], run_peer(peers[k].argv, k == 1));
	}
	wait_quiet();
	c = cold_cycle(false);
	sample(&ours[COLD], c.create + c.exec + c.destroy);
	sample(&ours[COLD_CREATE], c.create);
	sample(&ours[COLD_EXEC], c.exec);
	sample(&ours[DESTROY], c.destroy);
	wait_quiet();
	c = cold_cycle(true);
	sample(&ours[ROOT_COLD], c.create + c.exec + c.destroy);
	c = pool_cycle();
	sample(&ours[POOL_FIRST], c.create + c.exec);
	sample(&ours[POOL_CREATE], c.create);
	wait_quiet();
	sample(&ours[LIVE], live_exec(false));
	sample(&ours[ROOT_LIVE], live_exec(true));
	sample(&ours[WAKE], wake_exec());
	wait_quiet();
	sample(&ours[WHOLE], run_peer(whole, false));
	sample(&ours[FORK], fork_dirty(DIRTY_MIB));
}

static void bursts(void)
{
	double us[WIDE];

	for (size_t k = 0; k < n_peers; k++) {
		if (k == 1 || theirs[k].absent || k == n_peers - 1)
			continue; /* crun's containers have one name; vfork waits for each */
		wait_quiet();
		run_peers_at_once(peers[k].argv, WIDE, us);
		for (size_t i = 0; i < WIDE; i++)
			sample(&at_once[k], us[i]);
	}
	wait_quiet();
	burst(WIDE, us);
	for (size_t i = 0; i < WIDE; i++)
		sample(&ours[BURST], us[i]);
}

static void print_row(struct row *r, const char *what, const char *who, double plain)
{
	if (r->absent || !r->n)
		printf("| %s | %s | — | — | — | could not be run here |\n", what, who);
	else
		printf("| %s | %s | %.0f | %.0f | %.2f | %zu |\n", what, who, percentile(r, 0.5),
		       percentile(r, 0.99), percentile(r, 0.5) / plain, r->n);
}

static void print_times(void)
{
	double plain = percentile(&theirs[0], 0.5);

	printf("| operation | who | median µs | p99 µs | × fork + exec | "
	       "n |\n|---|---|---|---|---|---|\n");
	for (size_t k = 0; k < n_peers; k++)
		print_row(&theirs[k], "run `true`", peers[k].name, plain);
	for (size_t i = 0; i < OURS; i++)
		print_row(&ours[i], ours[i].what, ours[i].who, plain);
	for (size_t k = 0; k < n_peers; k++) {
		if (at_once[k].n)
			print_row(&at_once[k], "16 at once, each to its end", peers[k].name, plain);
	}
}

enum { PEER_BWRAP = 3 }; /* in peers[]; the first is fork + exec */

/* What is to be reached: as so many times another row of the same run, or as so many µs. */
static const struct {
	int row;
	double times, us;
	struct row *than;
	const char *name; /* of the other row */
} reach[] = {
	{ COLD, .times = 3.5, .than = &theirs[0], .name = "fork + exec" },
	{ POOL_FIRST, .times = 1.5, .than = &theirs[0], .name = "fork + exec" },
	{ LIVE, .times = 1.5, .than = &theirs[0], .name = "fork + exec" },
	{ FORK, .us = 5000 },
	{ BURST, .us = 20000 },
	{ WHOLE, .times = 2.0, .than = &theirs[PEER_BWRAP], .name = "bwrap" },
	{ ROOT_COLD, .times = 1.3, .than = &ours[COLD], .name = "uid 1000" },
	{ ROOT_LIVE, .times = 1.3, .than = &ours[LIVE], .name = "uid 1000" },
};
#define REACH_CREATES 600.0
#define REACH_IDLE_MB 0.4

static void print_reach(double creates, double idle_mb)
{
	printf("\n| to be reached, medians | bound | here | |\n|---|---|---|---|\n");
	for (size_t i = 0; i < sizeof(reach) / sizeof(reach[0]); i++) {
		struct row *r = &ours[reach[i].row], *than = reach[i].than;
		double most = than ? reach[i].times : reach[i].us / 1000;
		double here = percentile(r, 0.5) / (than ? percentile(than, 0.5) : 1000);

		if (than && (than->absent || !than->n))
			continue;
		printf("| %s | ≤ %.1f %s%s | %.2f | %s |\n", r->what, most, than ? "× " : "ms",
		       than ? reach[i].name : "", here,
		       here <= most ? "reached" : "**not reached**");
	}
	printf("| sustained, each destroyed again | ≥ %.0f creates/s | %.0f | %s |\n",
	       REACH_CREATES, creates, creates >= REACH_CREATES ? "reached" : "**not reached**");
	printf("| idle, all in | ≤ %.1f MB | %.2f | %s |\n", REACH_IDLE_MB, idle_mb,
	       idle_mb <= REACH_IDLE_MB ? "reached" : "**not reached**");
}

static double settled(void)
{
	usleep(1500000); /* the kernel gives memory of network namespaces back late */
	return (double)mem_available();
}

static double print_memory(const char *who, size_t n, double before)
{
	double mb = (before - settled()) / (double)n / 1e6;

	printf("| %s | %zu | %.2f |\n", who, n, mb);
	return mb;
}

static void idle_peer(const struct peer *p)
{
	int pids[IDLE_PEERS];
	double before = settled();

	for (size_t i = 0; i < IDLE_PEERS; i++)
		pids[i] = start_peer(p->idle);
	print_memory(p->name, IDLE_PEERS, before);
	for (size_t i = 0; i < IDLE_PEERS; i++)
		stop_peer(pids[i]);
}

/* Of ours that sleep, MB each. */
static double print_idle(size_t many)
{
	double before;

	printf("\n| idle, all in | how many | MB each |\n|---|---|---|\n");
	for (size_t k = 0; k < n_peers; k++) {
		if (peers[k].idle && !theirs[k].absent)
			idle_peer(&peers[k]);
	}
	before = settled();
	idle_sandboxes(many);
	print_memory("holt, just made", many, before);
	idle_asleep();
	return print_memory("holt, asleep", many, before);
}

int main(int argc, char **argv)
{
	size_t n = argc == 4 ? strtoul(argv[3], NULL, 10) : 0;
	double creates;

	if (n < 1 || n > SAMPLES_MAX)
		die("usage: bench LIBEXEC HOLT N");
	peers_init();
	engine_init(argv[1]);
	for (size_t i = 0; i < 2; i++)
		(void)cold_cycle(i % 2); /* warm */
	for (size_t i = 0; i < n; i++)
		round_of(argv[2], i);
	for (size_t i = 0; i * WIDE < n; i++)
		bursts();
	print_times();
	creates = sustained(n < 100 ? WIDE : SUSTAINED);
	printf("\nSustained: %.0f creates a second, each destroyed again, 16 under way.\n",
	       creates);
	print_reach(creates, print_idle(n < 100 ? 32 : IDLE_MANY));
	engine_fini();
	peers_fini();
	return 0;
}
