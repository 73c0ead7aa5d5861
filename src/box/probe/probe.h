#pragma once
/*
 * What this host can isolate. Each feature is tried, not guessed: a child process does exactly what
 * a sandbox needs. `holt doctor` prints the result. The warden refuses to make sandboxes while a
 * required feature is missing that the operator has not allowed by name.
 */
#include <stdbool.h>
#include <stddef.h>

enum probe_status { PROBE_OK, PROBE_MISSING };

enum { PROBE_MAX = 32 }; /* most results of probe_run() */

struct probe_result {
	/* "userns", "mountns", "pidns", "netns", "overlay", "seccomp", "landlock", "cgroup-memory",
	 * "cgroup-pids", "cgroup-cpu" … */
	const char *feature;
	bool required; /* without it, creation fails closed */
	enum probe_status status;
	char detail[160]; /* what was found: "ABI 7", "v1 (hybrid)", "EPERM from unshare" */
	char remedy[240]; /* "" if it works; else the command or setting that helps */
};

/* Runs every probe (some ten milliseconds; one that hangs is killed after ten seconds). Leaves
 * nothing on the host. Fills at most max results and returns their number. */
size_t probe_run(struct probe_result *ret_results, size_t max);

/* The first required feature that is missing and not in allow, a comma-separated list that may be
 * NULL; NULL when sandboxes can be made. Borrowed from results. */
const struct probe_result *probe_blocker(const struct probe_result *results, size_t n,
					 const char *allow);
