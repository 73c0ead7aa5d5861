/*
 * How a process becomes PID 1 of a sandbox. The order matters:
 *
 *  1. It is cloned into new pid, mount, ipc and uts namespaces that belong to the warden's user
 *     namespace, and takes a network namespace itself. So nobody inside will ever hold a
 *     capability over its mounts or its network. Meanwhile the warden makes its layer, its
 *     overlay and its control groups.
 *  2. It builds its root while it still may.
 *  3. Last comes the user namespace, in which it has no way to be anyone but GUEST_UID; then
 *     capabilities, Landlock and the system-call filter close behind it. With root it is uid 0
 *     there, with ROOT_IDS ids, and keeps capabilities over those alone: the namespaces above stay
 *     out of its reach.
 *  4. It executes holt-init, from the read-only mount that the warden put it on.
 *
 * The mount namespace's own root is an empty read-only tmpfs; the sandbox's root is mounted on
 * /r in it and entered by chroot. Landlock's rule stands on that tmpfs, so it goes on holding when
 * a fork puts another root on /r. There is nothing above /r to reach, no descriptor that leads
 * there, and chroot needs a capability that can't be had.
 *
 * With root the process is in two user namespaces of its own, one in the other, with the same ids.
 * Per-user limits (ucounts) are set in the outer one. The kernel charges all users of the inner one
 * to its creator, so they share these limits. Only a process in the outer one can map the inner
 * one, so a fork does that. It keeps nine capabilities (eight if a folder of the host is mounted
 * writable: not CAP_SETFCAP), no securebits and not no_new_privs: the filter and Landlock are
 * entered while it still has CAP_SYS_ADMIN in its own namespace. The root's mount is then without
 * nosuid; all others have it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <linux/openat2.h>
#include <linux/securebits.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <grp.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/sock.h"
#include "box/archive/mount.h"
#include "box/warden/internal.h"

/* Files of the kernel in /proc that are of no use inside, or tell about the host. Hidden where they
 * exist; the whole of /proc is read-only besides. */
static const char *const hidden_dirs[] = { "acpi", "scsi", "sys" };
static const char *const hidden_files[] = { "cmdline", "kallsyms",   "kcore",
					    "keys",    "timer_list", "sysrq-trigger" };

static _Noreturn void give_up(int socket, const char *stage, int errnum)
{
	struct im_setup_failed m = { .h = { IM_SETUP_FAILED, 0 }, .errnum = errnum };

	snprintf(m.stage, sizeof(m.stage), "%s", stage);
	sock_send(socket, &m, sizeof(m), NULL, 0, 0);
	_exit(1);
}

/* For the child only: a step that fails ends it, and tells the warden the name of the step. */
#define STEP(call)                                                                                 \
	do {                                                                                       \
		if ((call) < 0)                                                                    \
			give_up(sp->socket, #call, errno);                                         \
	} while (0)

int spawn_make_net(void)
{
	struct ifreq r = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	autoclose int s = -1;

	if (unshare(CLONE_NEWNET) < 0)
		return -1;
	s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return s < 0 ? -1 : ioctl(s, SIOCSIFFLAGS, &r);
}

/* Bounds what stays in the kernel when the program that made it has ended: it could fill the
 * sandbox's memory, with nothing left to kill but PID 1. Shared memory that no process has attached
 * goes at once. 16 queues hold at most 16384 messages each, which take 64 bytes or more. Semaphores
 * have the limits that Linux had before 3.19. A user namespace may set them since Linux 6.9. */
static const struct {
	const char *file, *value;
} of_system_v[] = {
	{ "sys/kernel/shm_rmid_forced", "1" },
	{ "sys/kernel/msgmni", "16" },
	{ "sys/kernel/sem", "250 32000 100 128" },
};

static void set_system_v(int proc, const char *file, const char *value)
{
	if (text_write(proc, file, value) < 0)
		log_debug("%s: %s", file, strerror(errno));
}

/* Only a control group counts shared memory: without one, this is its limit. */
static void bound_system_v(int proc, const struct spawn *sp)
{
	char pages[32];

	for (size_t i = 0; i < ARRAY_LEN(of_system_v); i++)
		set_system_v(proc, of_system_v[i].file, of_system_v[i].value);
	if (sp->driver != LIMIT_DRIVER_RLIMIT)
		return;
	snprintf(pages, sizeof(pages), "%llu",
		 (unsigned long long)(sp->limits->memory / (uint64_t)sysconf(_SC_PAGESIZE)));
	set_system_v(proc, "sys/kernel/shmall", pages);
}

/* Mounts its own /proc, which is read-only after the settings above. Through the host's /proc the
 * kernel would search for that file among those of all sandboxes. Where the host's is read-only for
 * good, only a read-only one can be mounted. */
static int mount_proc(const struct spawn *sp)
{
	const uint64_t attr = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
	autoclose int tree = -1;
	autoclose int fs = mount_fsopen("proc");

	if (fs < 0 || mount_fsconfig_create(fs) < 0)
		return -1;
	tree = mount_fsmount(fs, attr);
	if (tree < 0)
		tree = mount_fsmount(fs, attr | MOUNT_ATTR_RDONLY);
	if (tree < 0)
		return -1;
	bound_system_v(tree, sp);
	if (mount_setattr_tree(tree, MOUNT_ATTR_RDONLY, -1) < 0 ||
	    mount_attach(tree, AT_FDCWD, "/r/proc") < 0)
		return -1;
	return sp->host->nested ? umount2("/t/proc", MNT_DETACH) : 0;
}

static int hide(const char *name, const char *with)
{
	autoclose int tree = -1;
	char path[64];

	snprintf(path, sizeof(path), "/r/proc/%s", name);
	if (access(path, F_OK) < 0)
		return 0;
	tree = mount_copy(AT_FDCWD, with, false);
	return tree < 0 ? -1 : mount_attach(tree, AT_FDCWD, path);
}

static int hide_kernel(void)
{
	for (size_t i = 0; i < ARRAY_LEN(hidden_dirs); i++) {
		if (hide(hidden_dirs[i], "/t/empty") < 0)
			return -1;
	}
	for (size_t i = 0; i < ARRAY_LEN(hidden_files); i++) {
		if (hide(hidden_files[i], "/r/dev/null") < 0)
			return -1;
	}
	return 0;
}

static int attach_template(const struct store *s, bool of_host)
{
	char to[128];

	for (uint32_t i = 0; i < s->n_binds; i++) {
		autoclose int layer = -1;

		if (s->binds[i].of_host && !of_host)
			continue;
		snprintf(to, sizeof(to), "/r%s", s->binds[i].guest);
		if (s->binds[i].layered)
			layer = store_host_layer(s, s->binds[i].base);
		if (s->binds[i].layered ? layer < 0 || mount_attach(layer, AT_FDCWD, to) < 0
					: mount_move(s->binds[i].base, to) < 0)
			return -1;
	}
	return 0;
}

/* Gives it terminals of its own, so that it sees no others, owned by its user whoever opens them.
 * The kernel reserves a quarter of the machine's 4096 terminals for the host. */
static int mount_terminals(uint32_t uid)
{
	char options[96];

	snprintf(options, sizeof(options), "newinstance,ptmxmode=666,mode=620,uid=%u,gid=%u,max=%d",
		 uid, uid, TERMINALS_MAX);
	return mount("devpts", "/r/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, options);
}

/* Opens a path below /r and never leaves it, whatever links the files there contain. */
static int open_in_root(int root, const char *path, uint64_t flags)
{
	struct open_how how = { .flags = flags | O_CLOEXEC,
				.mode = flags & O_CREAT ? 0644 : 0,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };

	return (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
}

/* Makes the directories of path, and its last part as a directory or an empty file. They are the
 * sandbox's user's, who has to be able to put other files there; a folder of the host may refuse
 * that. */
static int make_guest_path(int root, const char *path, bool is_dir, uint32_t uid)
{
	char part[4096];

	for (const char *at = path + 1; *at; at++) {
		const char *end = strchrnul(at, '/');
		autoclose int parent = -1;
		autoclose int there = -1;

		snprintf(part, sizeof(part), "%.*s", (int)(end - path), path);
		there = open_in_root(root, part, O_PATH);
		if (there < 0) {
			snprintf(part, sizeof(part), "%.*s", (int)(at - path), path);
			parent = open_in_root(root, part, O_PATH | O_DIRECTORY);
			if (parent < 0)
				return -1;
			snprintf(part, sizeof(part), "%.*s", (int)(end - at), at);
			if (*end || is_dir ? mkdirat(parent, part, 0755)
					   : mknodat(parent, part, S_IFREG | 0644, 0))
				return -1;
			if (fchownat(parent, part, uid, uid, AT_SYMLINK_NOFOLLOW) < 0 &&
			    errno != EPERM && errno != EINVAL && errno != EOVERFLOW)
				return -1;
		}
		if (!*end)
			return 0;
		at = end;
	}
	return 0;
}

/* On failure ends with a stage that the warden reports as it is: the operator named these
 * places. */
static void attach_binds(const struct spawn *sp)
{
	autoclose int root = open("/r", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char stage[60];
	int errnum;

	for (uint32_t i = 0; i < sp->n_binds; i++) {
		const struct bind *b = &sp->binds[i];
		autoclose int place = -1;

		if (make_guest_path(root, b->guest, b->is_dir, sp->uid) == 0)
			place = open_in_root(root, b->guest,
					     O_PATH | (b->is_empty ? O_DIRECTORY : 0));
		if (place < 0 && b->is_empty && errno == ENOTDIR)
			continue;
		if (place < 0 || mount_attach(b->tree, place, "") < 0 ||
		    (b->project && project_seal(b->project, b->tree, false) < 0)) {
			errnum = errno;
			snprintf(stage, sizeof(stage), IM_STAGE_MOUNT "%.*s", IM_STAGE_GUEST,
				 b->guest);
			give_up(sp->socket, stage, errnum);
		}
	}
}

static int set_limit(int resource, uint64_t value)
{
	const struct rlimit r = { value, value };

	return setrlimit(resource, &r);
}

/* Sets at most this value: on a small machine the limit may be lower, and only privileges could
 * raise it. */
static int lower_limit(int resource, uint64_t value)
{
	struct rlimit now;

	if (getrlimit(resource, &now) < 0)
		return -1;
	return set_limit(resource, value < now.rlim_max ? value : now.rlim_max);
}

enum { OOM_SCORE_MAX = 1000, OOM_SCORE_SANDBOX = 300 };

enum { FILES_MAX = 131072, FILES_MIN = 256, IN_FLIGHT_MORE = 320 };

/* Descriptors in flight are counted for each user: a process can send none while more than its own
 * limit (and one message of 253 more) are in flight. Programs must not keep init from sending one,
 * so init gets at least twice their limit; nor, without privileges, the user's programs outside.
 * The soft limit is for programs, the hard one for init. */
static int limit_files(const struct host *h)
{
	struct rlimit files;
	uint64_t theirs;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return -1;
	if (files.rlim_max > FILES_MAX)
		files.rlim_max = FILES_MAX;
	files.rlim_cur = files.rlim_max / 2;
	if (h->rootless) {
		theirs = h->files > FILES_MIN + IN_FLIGHT_MORE ? h->files - IN_FLIGHT_MORE
							       : FILES_MIN;
		if (theirs < files.rlim_cur)
			files.rlim_cur = theirs;
	}
	return setrlimit(RLIMIT_NOFILE, &files);
}

static int set_limits(const struct spawn *sp)
{
	/* Where a control group counts processes, it must be the first to refuse: only it reports
	 * that. */
	uint64_t processes = sp->limits->pids + (sp->driver == LIMIT_DRIVER_RLIMIT ? 0u : 1u);

	/* A sandbox gets no real-time rights from the user that started Holt. */
	if (set_limit(RLIMIT_RTPRIO, 0) < 0 || set_limit(RLIMIT_NICE, 0) < 0 ||
	    set_limit(RLIMIT_RTTIME, 0) < 0)
		return -1;
	/* Limit 1 means no core file, and unlike 0 also none for a host's core_pattern pipe. */
	if (set_limit(RLIMIT_CORE, 1) < 0 || set_limit(RLIMIT_NPROC, processes) < 0)
		return -1;
	if (sp->driver == LIMIT_DRIVER_RLIMIT && set_limit(RLIMIT_DATA, sp->limits->memory) < 0)
		return -1;
	/* Without privileges these are counted for the user that also runs the hub: one sandbox
	 * must not take all. */
	return lower_limit(RLIMIT_SIGPENDING, 4096) < 0 ? -1 : lower_limit(RLIMIT_MSGQUEUE, 65536);
}

/* It may fail if processors were removed meanwhile; the limit holds without it. */
static void bind_to_cpus(const struct spawn *sp)
{
	if (CPU_COUNT(&sp->cpus) > 0 && sched_setaffinity(0, sizeof(sp->cpus), &sp->cpus) < 0)
		log_debug("bind to processors: %s", strerror(errno));
}

/* The capabilities of root inside: to change files and identities, to signal and to listen, all
 * within its ids. */
static const uint64_t root_capabilities = 1ull << CAP_CHOWN | 1ull << CAP_DAC_OVERRIDE |
					  1ull << CAP_FOWNER | 1ull << CAP_FSETID |
					  1ull << CAP_SETUID | 1ull << CAP_SETGID |
					  1ull << CAP_SETFCAP | 1ull << CAP_KILL |
					  1ull << CAP_NET_BIND_SERVICE;

/* Limits what programs may ever gain. This process itself drops its capabilities later, in
 * drop_capabilities(), or with root when it executes holt-init. */
static int bound_capabilities(const struct spawn *sp)
{
	uint64_t kept = sp->root ? root_capabilities : 0;

	if (!sp->set_ids)
		kept &= ~(1ull << CAP_SETFCAP);
	if (!sp->root && prctl(PR_SET_SECUREBITS,
			       SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
				       SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
				       SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED) < 0)
		return -1;
	for (int cap = 0; cap <= sp->host->last_cap; cap++) {
		if (!(kept & 1ull << cap) && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return -1;
	}
	return 0;
}

static int drop_capabilities(void)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };

	return (int)syscall(SYS_capset, &h, none);
}

/* Without privileges the kernel does not allow to drop groups, since some files deny access to a
 * group. */
static int become_guest(bool rootless)
{
	if ((!rootless && setgroups(0, NULL) < 0) || setresgid(GUEST_UID, GUEST_UID, GUEST_UID) < 0)
		return -1;
	return setresuid(GUEST_UID, GUEST_UID, GUEST_UID);
}

#ifndef CLONE_INTO_CGROUP
#define CLONE_INTO_CGROUP 0x200000000ull
#endif

enum { PARTS_MAX = 4 + CG_CONTROLLERS };

/* Waits for the parts that the warden makes meanwhile. */
static int receive_parts(int socket, struct spawn_parts *ret_parts)
{
	int fds[PARTS_MAX], *at = fds;
	size_t n_fds = PARTS_MAX;
	struct im_parts m;
	ssize_t n = sock_recv(socket, &m, sizeof(m), fds, &n_fds, 0);

	if (n != (ssize_t)sizeof(m) || m.h.type != IM_PARTS ||
	    n_fds != 1 + m.fill + m.oom + m.pids + m.n_tasks) {
		errno = EPIPE;
		return -1;
	}
	*ret_parts = SPAWN_PARTS_INIT;
	ret_parts->root = *at++;
	if (m.fill)
		ret_parts->fill = *at++;
	if (m.oom)
		ret_parts->oom_events = *at++;
	if (m.pids)
		ret_parts->pids_events = *at++;
	while (ret_parts->n_tasks < m.n_tasks)
		ret_parts->tasks[ret_parts->n_tasks++] = *at++;
	return 0;
}

int spawn_give(int socket, const struct spawn_parts *parts, struct err *e)
{
	const struct im_parts m = {
		.h = { IM_PARTS, 0 },
		.fill = parts->fill >= 0,
		.oom = parts->oom_events >= 0,
		.pids = parts->pids_events >= 0,
		.n_tasks = parts->n_tasks,
	};
	int fds[PARTS_MAX];
	size_t n = 0;

	fds[n++] = parts->root;
	if (m.fill)
		fds[n++] = parts->fill;
	if (m.oom)
		fds[n++] = parts->oom_events;
	if (m.pids)
		fds[n++] = parts->pids_events;
	for (uint32_t i = 0; i < parts->n_tasks; i++)
		fds[n++] = parts->tasks[i];
	if (sock_send(socket, &m, sizeof(m), fds, n, 0) != (ssize_t)sizeof(m))
		return err_sys(e, errno, "hand its parts to a new sandbox");
	return 0;
}

void spawn_parts_fini(struct spawn_parts *parts)
{
	close_fd(&parts->root);
	close_fd(&parts->fill);
	close_fd(&parts->oom_events);
	close_fd(&parts->pids_events);
	for (uint32_t i = 0; i < parts->n_tasks; i++)
		close_fd(&parts->tasks[i]);
}

/* The thread enters its groups itself, see cgroup.c. Only the first call has an effect. */
static int enter_groups(struct spawn_parts *parts)
{
	while (parts->n_tasks) {
		if (write(parts->tasks[--parts->n_tasks], "0", 1) != 1)
			return -1;
	}
	return 0;
}

/* Where layers are plain, the new process copies the files: the memory for them is counted for its
 * own sandbox. */
static int fill_root(struct spawn_parts *parts)
{
	int to, errnum;

	if (parts->fill < 0)
		return 0;
	if (enter_groups(parts) < 0)
		return -1;
	to = openat(parts->root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (to < 0)
		return -1;
	errnum = copy_tree(take_fd(&parts->fill), to);
	errno = errnum;
	return errnum ? -1 : 0;
}

/* Tells the warden that the user namespace is there. */
static int ask_for_map(int socket)
{
	const struct im_head m = { IM_MAP_ME, 0 };

	return sock_send(socket, &m, sizeof(m), NULL, 0, 0) < 0 ? -1 : 0;
}

/* Waits until its map is written. */
static int await_map(int socket)
{
	struct im_head answer;
	size_t none = 0;

	if (sock_recv(socket, &answer, sizeof(answer), NULL, &none, 0) == (ssize_t)sizeof(answer))
		return 0;
	errno = EPIPE;
	return -1;
}

static int place_fd(int from, int to)
{
	if (from < 0) {
		close(to);
		return 0;
	}
	return from == to ? fcntl(to, F_SETFD, 0) : dup2(from, to);
}

/* Leaves exactly these open: null on 0 to 2, the socket, the two counters, its score. First moves
 * the sources away, since they may have numbers that others get. */
static int arrange_fds(const struct spawn *sp, const struct spawn_parts *parts, int score)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	const int from[] = {
		null,
		null,
		null,
		sp->socket,
		parts->oom_events,
		parts->pids_events,
		score,
		sp->store->init,
	};
	int high[ARRAY_LEN(from)];

	for (size_t i = 0; i < ARRAY_LEN(from); i++) {
		high[i] = from[i] < 0 ? -1 : fcntl(from[i], F_DUPFD_CLOEXEC, INIT_SCORE_FD + 1);
		if (from[i] >= 0 && high[i] < 0)
			return -1;
	}
	for (int i = 0; i <= INIT_SCORE_FD; i++) {
		if (place_fd(high[i], i) < 0)
			return -1;
	}
	if (syscall(SYS_close_range, INIT_SCORE_FD + 1, ~0u, 1u << 2 /* CLOEXEC */) < 0)
		return -1;
	return high[ARRAY_LEN(from) - 1];
}

/* From here on this process ends with the warden. An end of file would not tell: this process and
 * its siblings have copies of the warden's ends of their sockets until they execute holt-init. */
static int die_with_warden(int pidfd)
{
	struct pollfd gone = { .fd = pidfd, .events = POLLIN };

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return -1;
	if (poll(&gone, 1, 0) > 0)
		_exit(1);
	return 0;
}

/* Makes the user namespace as the user that the sandbox is on the host, since the kernel charges
 * its owner for everything that is counted for each user (inotify instances, queued signals,
 * timers). */
static int make_userns(const struct spawn *sp)
{
	autoclose int fd = -1;

	if (!sp->host->rootless &&
	    (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) < 0 ||
	     setresuid((uid_t)-1, sp->uid, (uid_t)-1) < 0 ||
	     die_with_warden(sp->host->warden) < 0)) /* setresuid() had undone that */
		return -1;
	if (unshare(CLONE_NEWUSER) < 0)
		return -1;
	/* not writable everywhere; without privileges this keeps one sandbox from taking all
	 * instances */
	fd = openat(sp->host->proc, "sys/user/max_inotify_instances", O_WRONLY | O_CLOEXEC);
	if (fd >= 0 && write(fd, "32", 2) < 0)
		return -1;
	return 0;
}

int spawn_raise_oom(int proc, int by, bool above)
{
	autoclose int fd = openat(proc, "self/oom_score_adj", O_RDWR | O_CLOEXEC);
	char text[16];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	int score, room;

	if (n < 0)
		return -1;
	text[n] = '\0';
	score = atoi(text);
	room = (OOM_SCORE_MAX - score) / (above ? 2 : 1);
	n = snprintf(text, sizeof(text), "%d", score + (by < room ? by : room));
	return pwrite(fd, text, (size_t)n, 0) < 0 ? -1 : take_fd(&fd);
}

/* Two lines, since without privileges the first id is not adjacent to the others. */
static void write_root_map(char map[64], uint32_t uid)
{
	snprintf(map, 64, "0 %u 1\n1 %u %d\n", uid, uid + 1, ROOT_IDS - 1);
}

/* Maps a user namespace that is yet to be made, when the pipe is closed. */
struct mapper {
	int proc;
	char self[16]; /* what that calls the process whose namespace it is */
	int go[2];
	pid_t pid;
};

/* Writes both maps: each id to itself. */
static int mapper_main(void *arg)
{
	static const char *const files[] = { "uid_map", "gid_map" };
	const struct mapper *m = arg;
	char path[64], map[64], c;

	close(m->go[1]);
	if (read(m->go[0], &c, 1) != 0)
		return errno;
	write_root_map(map, 0);
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		snprintf(path, sizeof(path), "%s/%s", m->self, files[i]);
		if (text_write(m->proc, path, map) < 0)
			return errno;
	}
	return 0;
}

/* It shares this process's memory, since copying that takes longer than all else that it does. */
static int mapper_start(struct mapper *m, int proc)
{
	static char stack[16384] __attribute__((aligned(16)));

	*m = (struct mapper){ .proc = proc };
	if (readlinkat(proc, "self", m->self, sizeof(m->self) - 1) < 0 ||
	    pipe2(m->go, O_CLOEXEC) < 0)
		return -1;
	m->pid = clone(mapper_main, stack + sizeof(stack), CLONE_VM | SIGCHLD, m);
	return m->pid < 0 ? -1 : 0;
}

static int mapper_end(struct mapper *m)
{
	int status;

	close(m->go[0]);
	close(m->go[1]);
	if (waitpid(m->pid, &status, 0) != m->pid)
		return -1;
	errno = WIFEXITED(status) ? WEXITSTATUS(status) : ECANCELED;
	return errno ? -1 : 0;
}

/* Makes it uid 0 of the namespace that it is in, and of another one in that. The kernel bounds what
 * a user has for each user of each user namespace, and for whoever made that one. Programs with
 * root are as many users as they like, so they are in a second one, whose maker stands for all of
 * them in the first. Only a process in the first can map it. */
static void become_root(const struct spawn *sp)
{
	struct mapper m;

	STEP(mapper_start(&m, sp->host->proc));
	STEP(await_map(sp->socket));
	STEP(setgroups(0, NULL));
	STEP(setresgid(0, 0, 0));
	STEP(setresuid(0, 0, 0));
	STEP(die_with_warden(sp->host->warden)); /* setresuid() had undone that */
	/* setresuid() also gave its files in /proc to the host's root. Nothing else is in the
	 * sandbox yet. */
	STEP(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
	STEP(set_limits(sp));
	STEP(unshare(CLONE_NEWUSER));
	STEP(mapper_end(&m));
}

static _Noreturn void child_main(const struct spawn *sp)
{
	static char *const argv[] = { (char *)"holt-init", NULL }, *const envp[] = { NULL };
	struct spawn_parts parts;
	int init, score;

	STEP(die_with_warden(sp->host->warden));
	STEP(setsid());
	STEP(score = spawn_raise_oom(sp->host->proc, OOM_SCORE_SANDBOX, true));
	STEP(sp->net < 0 ? spawn_make_net() : setns(sp->net, CLONE_NEWNET));
	/* The network namespace's owner controls ports below 1024, and root inside is not its
	 * owner. */
	if (sp->root &&
	    text_write(sp->host->proc, "sys/net/ipv4/ip_unprivileged_port_start", "0") < 0)
		log_debug("ports below 1024: %s", strerror(errno));
	STEP(receive_parts(sp->socket, &parts));
	STEP(fill_root(&parts));
	STEP(mount_attach(parts.root, AT_FDCWD, "/r"));
	STEP(attach_template(sp->store, sp->of_host));
	STEP(mount_terminals(sp->uid));
	attach_binds(sp);
	STEP(mount_proc(sp)); /* covers whatever a link in the files led there */
	STEP(hide_kernel());
	STEP(facts_show(sp->facts, sp->slot));
	STEP(sethostname("sandbox", 7));
	/* After the mounts, since for each mount the kernel would keep lists for this group. */
	STEP(enter_groups(&parts));
	STEP(make_userns(sp)); /* the kernel refuses it after the chroot */
	STEP(ask_for_map(sp->socket));
	if (sp->root)
		become_root(sp);
	STEP(chdir("/r"));
	STEP(chroot("."));
	STEP(unshare(CLONE_NEWCGROUP));
	STEP(set_limits(sp));
	bind_to_cpus(sp);
	STEP(bound_capabilities(sp));
	if (!sp->root) {
		STEP(await_map(sp->socket));
		STEP(become_guest(sp->host->rootless));
		STEP(drop_capabilities());
		STEP(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	}
	STEP(die_with_warden(sp->host->warden)); /* the change of credentials had ended that */
	STEP(init = arrange_fds(sp, &parts, score));
	if (limit_files(sp->host) < 0)
		give_up(INIT_FD, "limit its files", errno);
	if (sp->host->landlock >= 0 &&
	    syscall(SYS_landlock_restrict_self, sp->host->landlock, 0) < 0)
		give_up(INIT_FD, "landlock", errno);
	if (seccomp_load(sp->filter) < 0)
		give_up(INIT_FD, "seccomp", errno);
	syscall(SYS_execveat, init, "", argv, envp, AT_EMPTY_PATH);
	give_up(INIT_FD, "execute holt-init", errno);
}

struct clone_args_v2 {
	uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
	uint64_t set_tid, set_tid_size, cgroup;
};

pid_t spawn_start(const struct spawn *sp, int *ret_pidfd, struct err *e)
{
	int pidfd = -1;
	struct clone_args_v2 args = {
		.flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_PIDFD |
			 (sp->birthplace < 0 ? 0 : CLONE_INTO_CGROUP),
		.pidfd = (uint64_t)(uintptr_t)&pidfd,
		.exit_signal = SIGCHLD,
		.cgroup = sp->birthplace < 0 ? 0 : (uint64_t)sp->birthplace,
	};
	pid_t pid;

	if (store_enter_base(sp->store) < 0)
		return err_sys(e, errno, "enter the base namespace");
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0)
		child_main(sp);
	if (pid < 0)
		err_sys(e, errno, "start a process in new namespaces");
	store_return(sp->store);
	*ret_pidfd = pidfd;
	return pid;
}

static int write_map(const struct host *h, pid_t pid, const char *file, uint32_t uid, bool root,
		     struct err *e)
{
	char path[64], map[64];

	snprintf(path, sizeof(path), "%d/%s", (int)pid, file);
	if (root)
		write_root_map(map, uid);
	else
		snprintf(map, sizeof(map), "%d %u 1\n", GUEST_UID, uid);
	if (text_write(h->proc, path, map) < 0)
		return err_sys(e, errno, "write the sandbox's %s", file);
	return 0;
}

int spawn_map(const struct host *h, pid_t pid, uint32_t uid, bool root, struct err *e)
{
	if (write_map(h, pid, "uid_map", uid, root, e) < 0)
		return -1;
	return write_map(h, pid, "gid_map", uid, root, e);
}
