#include "box/probe/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "box/probe/internal.h"

/*
 * Each try runs in a child process that dies with us and reports through a pipe. What the child
 * made (namespaces, mounts) ends with it; it removes its control groups itself.
 */

enum { TRY_SECONDS = 10 }; /* the machine may be emulated and busy */

/* Without a required feature no sandbox is made. Without control groups, resource limits replace
 * them, and every result says so. */

static const struct {
	const char *feature;
	bool required;
	int (*try)(const struct probe_try *t);
	const char *config;
} probes[] = {
	{ "kernel", false, probe_try_kernel, NULL },
	{ "container", false, probe_try_container, NULL },
	{ "userns", true, probe_try_userns, "USER_NS" },
	{ "mountns", true, probe_try_mountns, NULL },
	{ "pidns", true, probe_try_pidns, "PID_NS" },
	{ "netns", true, probe_try_netns, "NET_NS" },
	{ "ipcns", true, probe_try_ipcns, "IPC_NS" },
	{ "utsns", true, probe_try_utsns, "UTS_NS" },
	{ "cgroupns", true, probe_try_cgroupns, "CGROUPS" },
	{ "tmpfs", true, probe_try_tmpfs, "TMPFS" },
	{ "overlay", true, probe_try_overlay, "OVERLAY_FS" },
	{ "procfs", true, probe_try_procfs, NULL },
	{ "pidfd", true, probe_try_pidfd, NULL },
	{ "seccomp", true, probe_try_seccomp, "SECCOMP_FILTER" },
	{ "landlock", true, probe_try_landlock, "SECURITY_LANDLOCK" },
	{ "cgroup-memory", false, probe_try_cgroup_memory, "MEMCG" },
	{ "cgroup-pids", false, probe_try_cgroup_pids, "CGROUP_PIDS" },
	{ "cgroup-cpu", false, probe_try_cgroup_cpu, "CFS_BANDWIDTH" },
	{ "cgroup-freezer", false, probe_try_cgroup_freezer, "CGROUP_FREEZER" },
};
_Static_assert(ARRAY_LEN(probes) <= PROBE_MAX, "callers keep room for PROBE_MAX results");

int probe_say(const struct probe_try *t, int errnum, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(t->detail, sizeof(((struct probe_result *)NULL)->detail), fmt, ap);
	va_end(ap);
	return errnum;
}

int probe_failed(const struct probe_try *t, int errnum, const char *what)
{
	const char *name = strerrorname_np(errnum);

	return probe_say(t, errnum, "%s from %s", name ? name : "an unknown error", what);
}

/* The report in the pipe, small enough for one atomic write. */
struct report {
	int errnum;
	char detail[sizeof(((struct probe_result *)NULL)->detail)];
};

/* Reads the report, for at most TRY_SECONDS; makes one if none came. */
static void try_wait(int in, struct report *r)
{
	struct pollfd p = { .fd = in, .events = POLLIN };
	uint64_t end = clock_ms() + TRY_SECONDS * 1000;
	int n;

	do {
		uint64_t now = clock_ms();

		n = poll(&p, 1, now < end ? (int)(end - now) : 0);
	} while (n < 0 && errno == EINTR);
	if (n > 0 && read(in, r, sizeof(*r)) == sizeof(*r))
		return;
	*r = (struct report){ .errnum = n > 0 ? ENODATA : ETIMEDOUT };
	if (n > 0)
		snprintf(r->detail, sizeof(r->detail), "the try ended without an answer");
	else
		snprintf(r->detail, sizeof(r->detail), "no answer within %d s", TRY_SECONDS);
}

static void try_run(size_t i, const struct probe_host *host, struct report *r)
{
	autoclose int in = -1, out = -1;
	int fds[2] = { -1, -1 };
	pid_t pid = pipe2(fds, O_CLOEXEC) < 0 ? -1 : fork();

	*r = (struct report){ .errnum = 0 };
	in = fds[0];
	out = fds[1];
	if (pid < 0) {
		r->errnum = errno;
		snprintf(r->detail, sizeof(r->detail), "no process for the try: %s",
			 strerror(errno));
		return;
	}
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGCHLD, SIG_DFL);
		r->errnum = probes[i].try(&(struct probe_try){ .host = host, .detail = r->detail });
		_exit(write(out, r, sizeof(*r)) == sizeof(*r) ? 0 : 1);
	}
	close_fd(&out);
	try_wait(in, r);
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		continue;
}

size_t probe_run(struct probe_result *ret_results, size_t max)
{
	struct probe_host host;
	struct report r;
	size_t n = 0;

	probe_host_fill(&host);
	for (; n < ARRAY_LEN(probes) && n < max; n++) {
		struct probe_result *p = &ret_results[n];

		try_run(n, &host, &r);
		*p = (struct probe_result){
			.feature = probes[n].feature,
			.required = probes[n].required,
			.status = r.errnum == 0 ? PROBE_OK : PROBE_MISSING,
		};
		memcpy(p->detail, r.detail, sizeof(p->detail));
		if (r.errnum != 0)
			probe_remedy(&host, p->feature, probes[n].config, r.errnum, p->remedy,
				     sizeof(p->remedy));
	}
	return n;
}

static bool is_listed(const char *list, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = list; p && *p; p += strcspn(p, ",")) {
		p += strspn(p, ", ");
		if (strncmp(p, name, n) == 0 && (p[n] == '\0' || p[n] == ',' || p[n] == ' '))
			return true;
	}
	return false;
}

const struct probe_result *probe_blocker(const struct probe_result *results, size_t n,
					 const char *allow)
{
	for (size_t i = 0; i < n; i++) {
		if (results[i].required && results[i].status != PROBE_OK &&
		    !is_listed(allow, results[i].feature))
			return &results[i];
	}
	return NULL;
}
