/* Other ways to run a program apart from the rest, as nearly equal to a sandbox of ours as each
 * can be. */
#include "bench.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define BWRAP                                                                                      \
	"bwrap", "--unshare-all", "--unshare-user", "--uid", "1000", "--gid", "1000",              \
		"--die-with-parent", "--cap-drop", "ALL", "--ro-bind", "/usr", "/usr",             \
		"--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink",       \
		"usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"
#define UNSHARE "unshare", "-U", "-r", "-m", "-u", "-i", "-n", "-p", "-f", "-C"
#define SLEEP "sleep", "1000"

static const char *const plain[] = { "/bin/true", NULL };
static const char *const bwrap[] = { BWRAP, "/bin/true", NULL };
static const char *const bwrap_idle[] = { BWRAP, SLEEP, NULL };
static const char *const unshare_[] = { UNSHARE, "/bin/true", NULL };
static const char *const unshare_idle[] = { UNSHARE, "--kill-child", SLEEP, NULL };
/* crun refuses hybrid control groups, so it gets a mount namespace without the second tree */
static const char *const crun[] = { "crun",
				    "--root",
				    "/run/holt-bench/state",
				    "--cgroup-manager",
				    "disabled",
				    "run",
				    "-b",
				    "/run/holt-bench/bundle",
				    "bench",
				    NULL };

const struct peer peers[] = {
	{ "fork + exec", plain, NULL },
	{ "vfork + exec", plain, NULL },
	{ "unshare, 8 namespaces", unshare_, unshare_idle },
	{ "bwrap, everything unshared", bwrap, bwrap_idle },
	{ "crun, without control groups", crun, NULL },
};
const size_t n_peers = sizeof(peers) / sizeof(peers[0]);

static const char config[] =
	"{\"ociVersion\":\"1.0.2\",\"process\":{\"user\":{\"uid\":1000,\"gid\":1000},"
	"\"args\":[\"/bin/true\"],\"cwd\":\"/\",\"env\":[\"PATH=/usr/bin\"],"
	"\"noNewPrivileges\":true},"
	"\"root\":{\"path\":\"rootfs\"},\"mounts\":["
	"{\"destination\":\"/usr\",\"type\":\"bind\",\"source\":\"/usr\",\"options\":[\"rbind\","
	"\"ro\"]},"
	"{\"destination\":\"/proc\",\"type\":\"proc\",\"source\":\"proc\"},"
	"{\"destination\":\"/dev\",\"type\":\"tmpfs\",\"source\":\"tmpfs\"}],"
	"\"linux\":{\"namespaces\":[{\"type\":\"pid\"},{\"type\":\"network\"},{\"type\":\"ipc\"},"
	"{\"type\":\"uts\"},{\"type\":\"mount\"},{\"type\":\"cgroup\"}]}}";

void peers_init(void)
{
	int failed = system(
		"mkdir -p /run/holt-bench/state /run/holt-bench/bundle/rootfs && "
		"cd /run/holt-bench/bundle/rootfs && mkdir -p usr proc dev && "
		"ln -sfn usr/bin bin && ln -sfn usr/lib lib && ln -sfn usr/lib64 lib64");
	FILE *f = failed ? NULL : fopen("/run/holt-bench/bundle/config.json", "we");

	if (!f)
		die("could not make the bundle for crun: run as root");
	fputs(config, f);
	fclose(f);
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		die("could not make a mount namespace: run as root");
}

void peers_fini(void)
{
	if (system("rm -rf /run/holt-bench") != 0)
		die("could not remove the bundle");
}

/* crun's own mount namespace has no second tree; ours must keep it. */
static void child(const char *const *argv, bool crun_wants)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a benchmark that is interrupted leaves nobody */
	dup2(null, 0);
	dup2(null, 1);
	dup2(null, 2);
	if (crun_wants) {
		unshare(CLONE_NEWNS);
		umount2("/sys/fs/cgroup/unified", MNT_DETACH);
	}
	execvp(argv[0], (char *const *)argv);
	_exit(127);
}

static pid_t start(const char *const *argv, bool by_vfork)
{
	bool is_crun = argv == crun;
	pid_t pid = by_vfork ? vfork() : fork();

	if (pid == 0) {
		if (by_vfork) {
			execv(argv[0], (char *const *)argv);
			_exit(127);
		}
		child(argv, is_crun);
	}
	return pid;
}

double run_peer(const char *const *argv, bool by_vfork)
{
	double begun = now_us();
	pid_t pid = start(argv, by_vfork);
	int status = 1;

	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		return -1;
	return now_us() - begun;
}

void run_peers_at_once(const char *const *argv, size_t n, double *ret_us)
{
	double begun = now_us();

	for (size_t i = 0; i < n; i++) {
		if (start(argv, false) < 0)
			die("fork");
	}
	for (size_t i = 0; i < n; i++) {
		int status = 1;

		if (waitpid(-1, &status, 0) < 0)
			die("waitpid");
		ret_us[i] = status == 0 ? now_us() - begun : -1;
	}
}

int start_peer(const char *const *argv)
{
	return (int)start(argv, false);
}

void stop_peer(int pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}
