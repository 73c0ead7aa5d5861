/*
 * holt-init: PID 1 of a sandbox, and the only process in it that is ours.
 *
 * It starts with everything already taken away: no capability, no way to gain one, a seccomp
 * filter, a Landlock domain, its own user id and namespaces. It reads requests from one socket,
 * starts programs, opens files for the hub, reaps dead processes, and does nothing else. When the
 * socket closes it exits, and the kernel ends the rest of the sandbox.
 *
 * Programs that it starts have the same user id, so it defends itself: it is not dumpable (no
 * ptrace, no /proc/1/mem or fd), signals from inside can't reach a PID 1 without handlers for them,
 * and nobody waits for it without a time limit (the hub kills from outside).
 *
 * Its hub may be killed and another one take over (IM_RESET). Requests of the first hub that are
 * not finished are then ended: its programs with all that they started, its half-written files.
 * Processes that its finished programs left behind continue.
 *
 * Each program is made a subreaper before it is executed, so that its tree can be found at its
 * timeout: its orphans become its children, so while it lives all that it started are its
 * descendants.
 *
 * Trees that are killed in one burst share each scan of /proc. One that forks faster than it can be
 * killed takes all processes of the sandbox with it (kill(-1)). The warden gives the sandbox its
 * CPU weight back meanwhile (WM_HURRY), since init searches beside whatever computes there: beside
 * 300 spinning programs a timeout may still be seconds late. At nice -20 it was less late, but
 * neighbours of fork bombs then waited three times as long.
 *
 * Large, rarely touched arrays have a section of their own (INIT_LARGE), so that an idle init
 * dirties few pages.
 */
#include "base/fd.h"
#include "base/folder.h"
#include "box/init/internal.h"
#include "box/init/message.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sock.h"
#include "base/version.h"

enum {
	USER_ID = 1000, /* see GUEST_UID of the warden */
	EXECS_MAX = 1024,
	PIDS_SEEN_MAX = 32768,
	BURST_MAX = 32, /* messages until dying programs must be killed: each may start a program */
	KILL_ROUNDS = 16,
	KILL_PAUSE_US = 500, /* after the first round; doubled after each of the next five */
	STOP_ROUNDS = 96,
	STOP_PATIENCE = 16, /* rounds; then all continue for a moment, and pauses double */
	STOP_PAUSE_US = 2000,
	RESTING_MAX = 1024,
	UNTRACED_MAX = 64, /* in one pass over dead children */
	SEND_TRIES = 10, /* tries to send a message with a descriptor */
	SEND_PAUSE_US = 1000,
	SECRET_FD = 90,
	SCORE_MAX = 1000,
	SCORE_OF_PROGRAMS = 300, /* more than this one's; a thousandth of the limit each */
	SCORE_ROOM = 64 << 10,
	SECRET_VAR_MAX = WIRE_SECRET_NAME_MAX + 48,
};

static const char shell_bash[] = "/bin/bash", shell_sh[] = "/bin/sh";

struct running {
	uint32_t id; /* 0: nobody waits for it any more */
	pid_t pid; /* 0: free */
	uint32_t oom_kills, pids_hits; /* counters when it started */
	bool dying; /* kill_dying() kills it, and all its descendants */
};

static struct {
	int signals;
	int null;
	struct rlimit files; /* limits of programs */
	int n_execs; /* slots of execs in use, from the first */
	int dying_for; /* number of messages; 0: nothing dies */
	char score[12], score_of_programs[12]; /* oom_score_adj */
} self;

static struct running execs[EXECS_MAX] INIT_LARGE;
static char message[WIRE_MAX + 1] INIT_LARGE __attribute__((aligned(8)));
static char *strings[STRINGS_MAX] INIT_LARGE;
static char secret_vars[WIRE_SECRETS_MAX][SECRET_VAR_MAX] INIT_LARGE;

/* Other processes of this user, or a lack of memory, may make it fail for a while; the hub's own
 * time limits end a wait that is too long. */
int init_send(const void *msg, size_t n, int fd)
{
	for (int i = 0; sock_send(INIT_FD, msg, n, &fd, fd >= 0, 0) < 0; i++) {
		if (errno != ETOOMANYREFS && errno != ENOBUFS && errno != ENOMEM)
			_exit(1);
		if (fd >= 0 && i == SEND_TRIES)
			return -1;
		usleep(SEND_PAUSE_US);
	}
	return 0;
}

/* ---- counters of the cgroup ------------------------------------------------------------------ */

/* Returns the number after `key ` in a cgroup file, 0 when there is none. */
static uint32_t counter(int fd, const char *key)
{
	char text[512];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	const char *at;

	if (n <= 0)
		return 0;
	text[n] = '\0';
	for (at = text; (at = strstr(at, key)); at++) {
		if ((at == text || at[-1] == '\n') && at[strlen(key)] == ' ')
			return (uint32_t)strtoul(at + strlen(key) + 1, NULL, 10);
	}
	return 0;
}

static uint32_t oom_kills(void)
{
	return counter(INIT_OOM_FD, "oom_kill");
}

static uint32_t pids_hits(void)
{
	return counter(INIT_PIDS_FD, "max");
}

/* Whether the file system of the sandbox has no space or no inodes left. */
static uint32_t disk_full(void)
{
	struct statfs s;

	return statfs("/", &s) == 0 && (s.f_bfree == 0 || (s.f_files > 0 && s.f_ffree == 0));
}

/* ---- which process the kernel ends for want of memory ---------------------------------------- */

/* One with the highest score, and of these the largest, which this one could be: a program may be
 * tiny and keep its memory in files or pipes. A process begins with its parent's score, and this
 * one has no right to change any but its own. So that is theirs while it starts one. What the
 * kernel needs for that is freed before: this one could be the largest in between. */
static void score_read(void)
{
	int own;

	if (pread(INIT_SCORE_FD, self.score, sizeof(self.score) - 1, 0) <= 0)
		return;
	own = atoi(self.score);
	snprintf(self.score, sizeof(self.score), "%d", own);
	snprintf(self.score_of_programs, sizeof(self.score_of_programs), "%d",
		 own + SCORE_OF_PROGRAMS < SCORE_MAX ? own + SCORE_OF_PROGRAMS : SCORE_MAX);
}

static void score_lower(void)
{
	int of_fork = errno;

	(void)!pwrite(INIT_SCORE_FD, self.score, strlen(self.score), 0);
	errno = of_fork;
}

static void score_raise(void)
{
	void *room = mmap(NULL, SCORE_ROOM, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (room != MAP_FAILED)
		munmap(room, SCORE_ROOM);
	(void)!pwrite(INIT_SCORE_FD, self.score_of_programs, strlen(self.score_of_programs), 0);
}

pid_t init_fork(void)
{
	pid_t pid;

	score_raise();
	pid = fork();
	if (pid != 0)
		score_lower();
	return pid;
}

/* ---- programs -------------------------------------------------------------------------------- */

/* Data of the new process and its parent; they share memory until it executes (vfork). */
struct launch {
	const struct im_exec *m;
	char *const *argv;
	char *const *envp;
	const char *cwd;
	int fds[3];
	char **secrets; /* the variables whose values go into files, n_secrets of them */
	struct rlimit files; /* limit of files that it may have open */
	bool limited; /* the limit was requested */
	volatile uint32_t stage;
	volatile int errnum;
};

static const char *env_get(char *const *envp, const char *name)
{
	size_t n = strlen(name);

	for (; *envp; envp++) {
		if (strncmp(*envp, name, n) == 0 && (*envp)[n] == '=')
			return *envp + n + 1;
	}
	return NULL;
}

/* Like execvp, but searches in the program's PATH, not in ours. Returns on failure, errno set to
 * the most telling error. */
static void exec_search(char *const *argv, char *const *envp)
{
	const char *path = env_get(envp, "PATH"), *end;
	char file[4096];
	int telling = ENOENT;

	if (strchr(argv[0], '/')) {
		execve(argv[0], argv, envp);
		return;
	}
	for (path = path ? path : "/usr/bin:/bin"; *path; path = *end ? end + 1 : end) {
		int len;

		end = strchrnul(path, ':');
		len = (int)(end - path);
		if (snprintf(file, sizeof(file), "%.*s%s%s", len, path, len ? "/" : "", argv[0]) >=
		    (int)sizeof(file))
			continue;
		execve(file, argv, envp);
		if (errno != ENOENT && errno != ENOTDIR)
			telling = errno;
	}
	errno = telling;
}

/* Uses the kernel's own calls, since the C library's change all threads of its process. */
static int become_user(void)
{
	if (syscall(SYS_setgroups, 0, NULL) < 0 ||
	    syscall(SYS_setresgid, USER_ID, USER_ID, USER_ID) < 0)
		return -1;
	return (int)syscall(SYS_setresuid, USER_ID, USER_ID, USER_ID);
}

/* A file in memory that only its owner may read and nobody may change. It is in no folder, so forks
 * and snapshots of the sandbox do not have it, and it ends with the last process that has it open.
 * Returns a descriptor out of the way of those that scripts use. */
static int secret_file(const char *text)
{
	int fd = memfd_create("secret", MFD_ALLOW_SEALING), high;

	if (fd < 0)
		return -1;
	if (fd_write(fd, text, strlen(text)) < 0 || lseek(fd, 0, SEEK_SET) < 0 ||
	    fchmod(fd, 0400) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		return -1;
	high = fcntl(fd, F_DUPFD, SECRET_FD);
	if (high < 0)
		return fd;
	close(fd);
	return high;
}

/* Puts values into files, and the names of these into the variables. By the number of the process
 * the name is good for its children too, as long as it lives. */
static int give_secrets(char **vars, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const char *value = strchr(vars[i], '=');
		int fd = value ? secret_file(value + 1) : -1;

		if (fd < 0)
			return -1;
		snprintf(secret_vars[i], sizeof(secret_vars[i]), "%.*s=/proc/%d/fd/%d",
			 (int)(value - vars[i]), vars[i], (int)getpid(), fd);
		vars[i] = secret_vars[i];
	}
	return 0;
}

/* The folder in which programs start can be removed where / is the sandbox's own. Then it is made
 * anew, as an agent that has removed it could start nothing any more. */
static int launch_enter(const char *dir)
{
	static const char usual[] = "/workspace";

	if (chdir(dir) == 0)
		return 0;
	if (errno != ENOENT || strcmp(dir, usual) != 0 || mkdir(usual, 0755) < 0)
		return -1;
	return chdir(dir);
}

/* Runs in the new process, in our memory: writes only its own stack, *l and what secrets need. */
static _Noreturn void launch_child(struct launch *l)
{
	sigset_t none;

	score_lower(); /* at once; a killed child leaves it to the parent */
	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	if (l->m->terminal && ioctl(l->fds[0], TIOCSCTTY, 0) < 0)
		goto fail;
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	if (setrlimit(RLIMIT_NOFILE, &l->files) < 0 && l->limited)
		goto fail;
	for (int i = 0; i < 3; i++) {
		if (dup2(l->fds[i], i) < 0)
			goto fail; /* all our descriptors are above 2, so none is lost */
	}
	if (l->m->how.user == EXEC_AS_USER && become_user() < 0)
		goto fail;
	if (give_secrets(l->secrets, l->m->secret_files) < 0)
		goto fail;
	l->stage = IM_STAGE_CWD;
	if (launch_enter(l->cwd) < 0)
		goto fail;
	l->stage = IM_STAGE_EXEC;
	exec_search(l->argv, l->envp);
fail:
	l->errnum = errno;
	_exit(127);
}

static pid_t launch(struct launch *l)
{
	pid_t pid;

	l->stage = IM_STAGE_FORK;
	l->errnum = 0;
	score_raise();
	pid = vfork();
	if (pid == 0)
		launch_child(l);
	score_lower();
	if (pid < 0) {
		l->errnum = errno;
		return -1;
	}
	if (l->errnum) {
		waitpid(pid, NULL, 0);
		return -1;
	}
	return pid;
}

static struct running *find_exec(uint32_t id, pid_t pid)
{
	for (int i = 0; i < self.n_execs; i++) {
		struct running *r = &execs[i];

		if (r->pid && (pid ? r->pid == pid : r->id == id))
			return r;
	}
	return NULL;
}

static void exec_failed(uint32_t id, uint32_t stage, int errnum)
{
	const struct im_exit out = {
		.h = { IM_EXIT, id },
		.stage = stage,
		.errnum = errnum,
	};

	init_send(&out, sizeof(out), -1);
}

static void handle_exec(struct im_exec *m, size_t n, const int fds[3])
{
	struct launch l = { .m = m, .fds = { fds[0], fds[1], fds[2] }, .files = self.files };
	struct running *r = NULL;
	char *cwd = NULL;
	pid_t pid;

	for (int i = 0; i < self.n_execs && !r; i++)
		r = execs[i].pid ? NULL : &execs[i];
	if (!r && self.n_execs < EXECS_MAX)
		r = &execs[self.n_execs++];
	if (!r || message_exec(m, n, strings, &cwd) < 0 || m->secret_files > m->envc ||
	    m->secret_files > WIRE_SECRETS_MAX) {
		exec_failed(m->h.id, IM_STAGE_FORK, r ? EINVAL : EUSERS);
		return;
	}
	l.limited = m->files && m->files < l.files.rlim_max;
	if (l.limited)
		l.files = (struct rlimit){ m->files, m->files };
	l.cwd = cwd;
	l.argv = strings + STRINGS_BEFORE;
	l.envp = l.argv + m->argc + 1;
	l.secrets = strings + STRINGS_BEFORE + m->argc + 1 + m->envc - m->secret_files;
	if (m->shell) {
		strings[1] = access(shell_bash, X_OK) == 0 ? (char *)shell_bash : (char *)shell_sh;
		strings[2] = (char *)"-c";
		l.argv = strings + 1;
	}
	r->id = m->h.id;
	r->oom_kills = oom_kills();
	r->pids_hits = pids_hits();
	pid = launch(&l);
	if (pid < 0) {
		exec_failed(m->h.id, l.stage, l.errnum);
		return;
	}
	r->pid = pid;
}

static void report_exit(struct running *r, int status, const struct rusage *u)
{
	const struct im_exit out = {
		.h = { IM_EXIT, r->id },
		.stage = IM_STAGE_RAN,
		.status = status,
		.oom_kills = oom_kills() - r->oom_kills,
		.pids_hits = pids_hits() - r->pids_hits,
		.disk_full = disk_full(),
		.cpu_us = (uint64_t)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) * 1000000 +
			  (uint64_t)(u->ru_utime.tv_usec + u->ru_stime.tv_usec),
		.peak_bytes = (uint64_t)u->ru_maxrss * 1024,
	};

	r->pid = 0;
	r->dying = false;
	while (self.n_execs > 0 && !execs[self.n_execs - 1].pid)
		self.n_execs--;
	if (out.h.id)
		init_send(&out, sizeof(out), -1);
}

static void reap(void)
{
	struct signalfd_siginfo si;
	struct rusage usage;
	struct running *r;
	int status, untraced = 0;
	pid_t pid;

	while (read(self.signals, &si, sizeof(si)) > 0)
		;
	while ((pid = wait4(-1, &status, WNOHANG | __WALL, &usage)) > 0) {
		if ((status & 0xff) == 0x7f) { /* musl's WIFSTOPPED overflows an int */
			long number = WSTOPSIG(status);

			/* Where programs may trace each other, a child can make us its tracer
			 * (PTRACE_TRACEME). Detached it continues. A SIGTRAP only tells a tracer
			 * of an exec, so it is not passed on. Children that do it again and again
			 * would keep us from everything else. */
			if (untraced++ >= UNTRACED_MAX ||
			    ptrace(PTRACE_DETACH, pid, NULL, number == SIGTRAP ? 0 : number) < 0)
				kill(pid, SIGKILL);
			continue;
		}
		r = find_exec(0, pid);
		if (r)
			report_exit(r, status, &usage);
		else if (!init_file_reaped(pid, status))
			init_helper_reaped(pid, status);
	}
}

/* ---- processes of the sandbox ---------------------------------------------------------------- */

struct proc {
	pid_t pid, parent;
	bool alive; /* not a zombie; a process whose first thread ended looks like one */
	bool stopped;
	bool traced; /* stopped for its tracer, which is another process inside */
	bool deep; /* in a sleep that only SIGKILL ends */
	bool ours; /* a descendant of the process that we search for */
};

static bool read_proc(const char *name, struct proc *p)
{
	struct stat_line line;

	if (!init_proc_stat(name, &line))
		return false;
	p->pid = (pid_t)atol(name);
	p->parent = line.parent;
	p->alive = (line.state != 'Z' && line.state != 'X') || line.threads > 1;
	p->stopped = line.state == 'T';
	p->traced = line.state == 't';
	p->deep = line.state == 'D';
	p->ours = false;
	return true;
}

static struct proc procs[PIDS_SEEN_MAX] INIT_LARGE;

/* Fills procs with every process but this one; returns how many. */
static size_t list_procs(void)
{
	struct folder f = folder_of("/proc");
	size_t n = 0;

	/* Its callers look again until there are none. */
	while (n < PIDS_SEEN_MAX && folder_next(&f) > 0) {
		const char *name = f.entry->d_name;

		if (name[0] >= '1' && name[0] <= '9' && read_proc(name, &procs[n]) &&
		    procs[n].pid != 1)
			n++;
	}
	folder_end(&f);
	return n;
}

/* Marks the living descendants of dying programs; returns their number. */
static size_t mark_dying(size_t n)
{
	size_t found = 0;
	bool more = true;

	while (more) {
		more = false;
		for (size_t i = 0; i < n; i++) {
			struct proc *p = &procs[i];
			const struct running *r = p->ours ? NULL : find_exec(0, p->parent);
			bool child = r && r->dying;

			for (size_t k = 0; !p->ours && !child && k < n; k++)
				child = procs[k].ours && procs[k].pid == p->parent;
			if (p->ours || !child)
				continue;
			p->ours = true;
			more = true;
			found += p->alive;
		}
	}
	return found;
}

static bool pids_have(const pid_t *pids, size_t n, pid_t pid)
{
	for (size_t i = 0; i < n; i++) {
		if (pids[i] == pid)
			return true;
	}
	return false;
}

/* Processes that were killed in the last round. None of them can fork any more. */
static struct {
	pid_t pids[PIDS_SEEN_MAX];
	size_t n;
} killed INIT_LARGE;

/* Kills the marked ones of n processes; returns whether any was new. */
static bool kill_marked(size_t n)
{
	size_t n_killed = 0;
	bool new = false;

	for (size_t i = 0; i < n; i++) {
		if (!procs[i].ours || !procs[i].alive)
			continue;
		new = new || !pids_have(killed.pids, killed.n, procs[i].pid);
		kill(procs[i].pid, SIGKILL);
	}
	for (size_t i = 0; i < n; i++) {
		if (procs[i].ours && procs[i].alive)
			killed.pids[n_killed++] = procs[i].pid;
	}
	killed.n = n_killed;
	return new;
}

/* Starts to kill a program with all its descendants: it is stopped now and killed last, so that
 * orphans still become its children. Its process group is stopped with it: they are descendants,
 * and should not compute while the others are searched for. The programs of one burst of messages
 * are killed together, since each scan of all processes is expensive. */
static void let_die(struct running *r)
{
	kill(-r->pid, SIGSTOP);
	r->dying = true;
	self.dying_for = self.dying_for ?: 1;
}

/* If a tree forks faster than it can be killed, kills everything in the sandbox: kill(-1) can't be
 * outrun. A tree that is only slow to end, on a busy machine, does not cause this. */
static void kill_dying(void)
{
	bool new = true;
	size_t left = 1;

	if (!self.dying_for)
		return;
	killed.n = 0;
	for (int round = 0; round < KILL_ROUNDS && left; round++) {
		size_t n = list_procs();

		left = mark_dying(n);
		new = kill_marked(n);
		/* killed processes need a moment to end; new ones are visible only then */
		if (left)
			usleep(KILL_PAUSE_US << (round < 5 ? round : 5));
	}
	if (new)
		kill(-1, SIGKILL);
	/* The whole group: a fork that had begun when the program was stopped still ends, and its
	 * child would stay, stopped for good. */
	for (int i = 0; i < self.n_execs; i++) {
		if (execs[i].dying)
			kill(-execs[i].pid, SIGKILL);
		execs[i].dying = false;
	}
	self.dying_for = 0;
}

int init_signal_exec(uint32_t id, int signal)
{
	struct running *r = find_exec(id, 0);

	if (!r)
		return ESRCH; /* it has just ended; its IM_EXIT is on the way */
	if (signal < 1 || signal >= NSIG)
		return EINVAL;
	return kill(-r->pid, signal) < 0 ? errno : 0;
}

static void handle_signal(const struct im_signal *m)
{
	struct running *r = find_exec(m->h.id, 0);

	if (!(m->flags & IM_SIGNAL_TREE))
		(void)init_signal_exec(m->h.id, m->signal);
	else if (r)
		let_die(r);
}

/* Opens the directory of the sandbox's own terminals. The hub opens them there itself, since the
 * process that opened a terminal can influence how reading it behaves. */
static void handle_terminal(const struct im_head *m)
{
	int fd = open("/dev/pts", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct im_terminal_done out = {
		.h = { IM_TERMINAL_DONE, m->id },
		.errnum = fd < 0 ? errno : 0,
	};

	if (init_send(&out, sizeof(out), fd) < 0) {
		out.errnum = errno;
		init_send(&out, sizeof(out), -1);
	}
	if (fd >= 0)
		close(fd);
}

static void say_quiet(enum im_type type, uint32_t id, size_t processes)
{
	const struct im_quiet out = { .h = { type, id }, .processes = (uint32_t)processes };

	init_send(&out, sizeof(out), -1);
}

/* Whether any object of System V IPC exists: lines below a heading. If it can't be read, the answer
 * is yes. */
static uint32_t count_objects(const char *list)
{
	char text[512];
	uint32_t lines = 0;
	ssize_t n;
	int fd = open(list, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return errno != ENOENT; /* a kernel without it */
	while ((n = read(fd, text, sizeof(text))) > 0) {
		for (ssize_t i = 0; i < n; i++)
			lines += text[i] == '\n';
	}
	close(fd);
	return n < 0 ? 1 : lines > 0 ? lines - 1 : 0;
}

static void handle_quiesce(const struct im_head *m)
{
	struct im_quiet out = { .h = { IM_QUIET, m->id } };
	struct folder f;
	int more;

	reap();
	/* By their names alone, which can always be read. If they can't be listed, one counts. */
	f = folder_of("/proc");
	while ((more = folder_next(&f)) > 0)
		out.processes += f.entry->d_name[0] >= '1' && f.entry->d_name[0] <= '9' &&
				 strcmp(f.entry->d_name, "1") != 0;
	folder_end(&f);
	out.processes += more < 0;
	out.objects = count_objects("/proc/sysvipc/shm") + count_objects("/proc/sysvipc/sem") +
		      count_objects("/proc/sysvipc/msg");
	init_send(&out, sizeof(out), -1);
}

/* Processes that others had stopped before we did: they stay stopped. */
static struct {
	pid_t pids[RESTING_MAX];
	size_t n;
	bool others; /* we have stopped all others */
} resting INIT_LARGE;

static void continue_all(void)
{
	size_t n = list_procs();

	resting.others = false;
	for (size_t i = 0; i < n; i++) {
		if (!pids_have(resting.pids, resting.n, procs[i].pid))
			kill(procs[i].pid, SIGCONT);
	}
}

/* Continues processes whose parents seem to wait for their vfork. */
static void continue_vforked(size_t n)
{
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; procs[i].deep && k < n; k++) {
			if (procs[k].parent == procs[i].pid && procs[k].stopped &&
			    !pids_have(resting.pids, resting.n, procs[k].pid))
				kill(procs[k].pid, SIGCONT);
		}
	}
}

/* Used where no control group can freeze them: stops all processes by a signal that can't be
 * refused. Forks do not escape it: a stop that comes to the parent meanwhile comes to the child,
 * too. But a process that waits for its vfork can't be stopped before the child has executed
 * a program, and that child was stopped. */
static void handle_stop(const struct im_head *m)
{
	useconds_t pause = STOP_PAUSE_US;
	size_t n = list_procs(), running = 1;

	resting.n = 0;
	for (size_t i = 0; i < n && resting.n < RESTING_MAX; i++) {
		if (procs[i].stopped)
			resting.pids[resting.n++] = procs[i].pid;
	}
	for (int round = 1; round <= STOP_ROUNDS; round++) {
		resting.others = true;
		kill(-1, SIGSTOP);
		n = list_procs();
		running = 0;
		for (size_t i = 0; i < n; i++)
			running += procs[i].alive && !procs[i].stopped && !procs[i].traced;
		if (!running)
			break;
		continue_vforked(n);
		if (round % STOP_PATIENCE == 0) {
			continue_all();
			pause *= 2;
		}
		usleep(pause);
	}
	say_quiet(IM_QUIET, m->id, running);
}

/* Another hub begins: drops what the last one was waiting for. */
static void handle_reset(const struct im_reset *m)
{
	if (resting.others && !m->stay_stopped)
		continue_all();
	for (int i = 0; i < self.n_execs; i++) {
		struct running *r = &execs[i];

		if (!r->pid || !r->id)
			continue;
		r->id = 0;
		let_die(r);
	}
	kill_dying();
	init_file_reset();
	init_helper_reset();
	reap();
	say_quiet(IM_WAS_RESET, m->h.id, list_procs());
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void dispatch_exec(struct im_exec *m, size_t n, const int fds[3], int n_fds)
{
	const int terminal[3] = { fds[0], fds[0], fds[0] };
	const int with_null[3] = { self.null, fds[0], fds[1] };

	if (n_fds != (m->terminal ? 1 : m->has_stdin ? 3 : 2))
		/* we could not receive its descriptors */
		exec_failed(m->h.id, IM_STAGE_FORK, EMFILE);
	else
		handle_exec(m, n, m->terminal ? terminal : m->has_stdin ? fds : with_null);
}

static void init_dispatch(size_t n, int fds[3], int n_fds)
{
	struct im_head *h = (void *)message;

	if (!message_check(message, n))
		return;
	if (h->type != IM_SIGNAL && h->type != IM_EXEC)
		kill_dying();
	switch ((enum im_type)h->type) {
	case IM_EXEC:
		dispatch_exec((void *)h, n, fds, n_fds);
		break;
	case IM_SIGNAL:
		handle_signal((const void *)h);
		break;
	case IM_QUIESCE:
		handle_quiesce(h);
		break;
	case IM_STOP:
		handle_stop(h);
		break;
	case IM_CONTINUE:
		continue_all();
		break;
	case IM_TERMINAL:
		handle_terminal(h);
		break;
	case IM_RESET:
		handle_reset((const void *)h);
		break;
	case IM_FILE:
		init_file((const void *)h, n, n_fds == 1 ? fds[0] : -1);
		break;
	case IM_PROCESS:
		init_process((const void *)h);
		break;
	default: /* message_check() knows no other */
		break;
	}
}

static void serve_one(void)
{
	int fds[3] = { -1, -1, -1 };
	size_t n_fds = 3;
	ssize_t n = sock_recv(INIT_FD, message, WIRE_MAX, fds, &n_fds, MSG_DONTWAIT);

	if (n < 0 && sock_passes(errno))
		return; /* the message is still there */
	if (n <= 0)
		_exit(0); /* the hub is gone, or has given up this sandbox */
	message[n] = '\0';
	init_dispatch((size_t)n, fds, (int)n_fds);
	explicit_bzero(message, (size_t)n); /* it may have secrets */
	for (size_t i = 0; i < n_fds; i++)
		close(fds[i]);
}

int main(int argc, char **argv)
{
	const struct im_head ready = { IM_READY, 0 };
	static const unsigned long
		at_default[4]; /* the kernel's struct sigaction: SIG_DFL, no flags, no mask */
	struct pollfd wait_for[2];
	struct rlimit own;
	sigset_t chld;

	if (VERSION_TOLD("holt-init", argc, argv))
		return 0;
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	for (int fd = INIT_FD; fd <= INIT_SCORE_FD; fd++)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
	umask(022);
	/* Programs must not inherit ignored signals, for example from nohup. Libraries keep some
	 * for themselves and refuse those to signal(), but our parent may have ignored them. */
	for (long number = 1; number < _NSIG; number++)
		syscall(SYS_rt_sigaction, number, at_default, NULL, 8L);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, NULL);
	self.signals = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
	/* the soft limit that we got is for programs, the hard one for us */
	getrlimit(RLIMIT_NOFILE, &own);
	self.files = (struct rlimit){ own.rlim_cur, own.rlim_cur };
	own.rlim_cur = own.rlim_max;
	setrlimit(RLIMIT_NOFILE, &own);
	score_read();
	self.null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (self.signals < 0 || self.null < 0 || getpid() != 1)
		return 1;
	init_send(&ready, sizeof(ready), -1);
	wait_for[0] = (struct pollfd){ .fd = INIT_FD, .events = POLLIN };
	wait_for[1] = (struct pollfd){ .fd = self.signals, .events = POLLIN };
	for (;;) {
		if (poll(wait_for, 2, -1) < 0)
			continue;
		if (wait_for[1].revents)
			reap();
		if (wait_for[0].revents)
			serve_one();
		if (self.dying_for && (self.dying_for++ == BURST_MAX || poll(wait_for, 1, 0) == 0))
			kill_dying();
	}
}
