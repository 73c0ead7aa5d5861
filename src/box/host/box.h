#pragma once
/*
 * The sandbox engine's interface for the hub. A `struct box` owns one warden process and all
 * sandboxes that it made. When the box or its process ends, they end too and leave nothing on the
 * host. With box_config.warden_dir the sandboxes outlive a process that is killed, and the next box
 * of that folder adopts them:
 *
 * - Operations whose callback was called have taken effect.
 * - Other creates and forks are undone, a fork as a whole. Destroys are completed.
 * - Running execs are ended with all that they started. Processes that earlier execs left behind
 *   run on.
 *
 * All functions must be called on the loop's thread. A `_start` function returns at once and ends
 * in exactly one callback, never from inside the starting call. The `struct err` of a callback is
 * borrowed until it returns; NULL means success.
 *
 * The caller may choose the id of a sandbox; otherwise it is random ("sbx-" and 32 hex digits). A
 * `struct sandbox *` stays valid until sandbox_unref(), even after the sandbox has ended. Calls on
 * an ended one fail with ERR_SANDBOX_NOT_FOUND or ERR_GUEST.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "box/wire/file_types.h"
#include "box/wire/limits.h"
#include "box/wire/how.h"
#include "box/wire/state.h"

struct box;
struct sandbox;

struct env_var {
	struct str name, value;
};

/* A template that is an image, with its defaults for programs. */
struct box_template {
	/* absolute path. root/ below it holds the files, owned by the user who runs the hub. The
	 * folder is locked (flock(2), shared) while sandboxes use it. */
	const char *folder;
	bool of_host; /* mount the host's /usr over it, as for the template "host" */
	const struct env_var *env; /* defaults; a spec's variables override them */
	size_t n_env;
	struct str cwd; /* default for a spec without one; STR_NONE: /workspace */
	const struct str *argv; /* run by an exec without a command */
	size_t n_argv;
};

/* Finds a template, calls use(to, t, e) and returns its result; t is borrowed for that call. -1
 * with ERR_TEMPLATE_NOT_FOUND. */
typedef int (*box_template_use)(void *to, const struct box_template *t, struct err *e);
typedef int (*box_template_find)(void *arg, struct str name, box_template_use use, void *to,
				 struct err *e);

struct box_config {
	/* folder of holt-warden and holt-init; NULL: beside the running program, else where they
	 * are installed */
	const char *libexec_dir;
	uint32_t pool; /* ready sandboxes to keep, 0 to 64 */
	/* network namespaces to keep ready for sandboxes that the pool cannot serve, 0 to 16 */
	uint32_t networks;
	uint32_t max_sandboxes; /* 0: 4096 */
	/* Sandboxes with root may be asked for: a user without privileges then gets its ids of
	 * /etc/subuid when the warden starts, which takes some milliseconds. */
	bool root;
	struct limits limits; /* defaults for what a spec leaves 0; zeros: LIMITS_DEFAULT */
	/* comma list of isolation features (box/probe/probe.h) whose absence the operator accepts;
	 * NULL or "": none, creation fails closed */
	const char *allow;
	box_template_find find_template; /* for all but "host"; NULL: there are no others */
	void *find_arg;

	/* May be NULL. Called when a sandbox has ended, whatever the reason, before the callback of
	 * the operation that ended it. Not called for unused sandboxes of the pool. */
	void (*on_end)(void *arg, struct sandbox *sb, const struct err *why);
	void *on_end_arg;
	/* The caller ends sandboxes at their time to live. The warden does so only while no box is
	 * connected. */
	bool ttl_by_caller;
	/* Absolute path of a folder that no other user may enter; made if missing. The sandboxes
	 * then outlive a process that is killed, and box_new() adopts those that it finds there.
	 * NULL: all sandboxes end with this process. */
	const char *warden_dir;
	uint64_t linger_ms; /* how long sandboxes wait for the next process; 0: a day */
	/* A sandbox without requests for this long, in which nothing runs, falls asleep: it keeps
	 * its files and limits but no process. The next request wakes it, which takes as long as a
	 * create. 0: never. */
	uint64_t sleep_after_ms;
	/* absolute paths of host folders that must never be mounted, nor anything in them, nor any
	 * folder that contains them; at most CLOSED_MAX */
	const char *const *closed;
	size_t n_closed;
};
enum { CLOSED_MAX = 6 };

/* Starts the warden. Requests may follow at once; they wait for it. NULL with *e if it can't be
 * started. config is borrowed for this call only.
 *
 * With a warden_dir, a warden that lives there is taken over with its sandboxes. They are live on
 * return; requests wait until their inits have ended what the previous process ran. ERR_CONFLICT:
 * another process uses the warden; ERR_OTHER_BUILD: the warden is of another build, and stays
 * untouched; ERR_DENIED: other users can enter the folder; ERR_TIMEOUT. */
struct box *box_new(uv_loop_t *loop, const struct box_config *config, struct err *e) MUST_USE;

/* Cancels pending operations (ERR_CANCELLED), ends every sandbox and the warden, waits until they
 * are gone, then calls on_closed and frees the box. After 2 s the warden is killed, and its helper
 * cleans up. */
void box_close(struct box *box, void (*on_closed)(void *arg), void *arg);

/* Like box_close(), but with a warden_dir the sandboxes stay for the next process, as if this one
 * had been killed. */
void box_leave(struct box *box, void (*on_closed)(void *arg), void *arg);

/* From now on all sandboxes end with this process, however it ends. */
void box_end_with_process(struct box *box);

struct box_stats {
	const char *tier; /* "namespace" */
	const char *limits; /* limit_driver_name() */
	bool ready; /* the warden has answered; the following is known */
	bool rootless;
	uint32_t live; /* sandboxes handed out */
	uint32_t asleep; /* of those */
	uint32_t pool_size, pool_ready;
	uint64_t created, pool_hits, pool_misses, forked, destroyed, lost;
	uint64_t execs, bytes_in, bytes_out; /* of all sandboxes, as in struct usage */
};
void box_stats(const struct box *box, struct box_stats *ret_stats);

/* Borrowed; NULL if no live sandbox has that id. */
struct sandbox *box_find(struct box *box, struct str id);

/* Calls f for each live sandbox, in no order; f may end the one that it is given. */
void box_each(struct box *box, void (*f)(void *arg, struct sandbox *sb), void *arg);

/* Whether programs of the host act on a path below a folder of it, in the folder or in one on the
 * way: editors, agents, git, tools of shells. has() tells what is there, or will be: git takes a
 * directory with certain names for a repository. */
typedef bool box_project_has(void *arg, const char *path);
bool box_project_acts(const char *path, box_project_has *has, void *arg);

/* Has the log say what a sandbox has left in a folder of the host that it could write since that
 * Unix time. For one whose warden has ended; starts another one where there is none. */
void box_look_at_left(struct box *box, struct str folder, int64_t since_ms);

/* ---- lifecycle ------------------------------------------------------------------------------- */

struct sandbox_mount {
	/* absolute path of a directory or regular file on the host, in which no link is followed;
	 * ERR_DENIED for a closed one. {NULL}: an empty directory, which nobody may write */
	struct str host;
	struct str guest; /* absolute path inside; made if missing */
	bool writable;
	/* A file of the caller's own folders, which no other mount may show; read-only. */
	bool own;
	/* Also what programs of the host act on, which else stays as it is: .git/hooks and others
	 * (docs/sandboxes.md). */
	bool all;
	/* It may be below BOX_STATE of the caller's own folders; for what the operator named. */
	bool state;
	/* Quota in bytes; 0: none. ERR_NO_QUOTA: the host can't enforce one. With a quota, mounts
	 * inside the directory are not shown, only the files below them. */
	uint64_t size;
};

enum { SANDBOX_ENV_MAX = 256 /* variables */ };
enum { SANDBOX_ID_MAX = 64, SANDBOX_BASE_MAX = 72 };

/* 1 to 64 letters, digits, '-' and '_', the first a letter or digit; else ERR_INVALID. */
int sandbox_id_check(struct str id, struct err *e) MUST_USE;

/* Borrowed for the call only. */
struct sandbox_spec {
	struct str id; /* {NULL}: a random one. The caller ensures that ids are unique. */
	/* "host" (the default for {NULL}), or a name for box_config.find_template */
	struct str template;
	struct limits limits;
	uint64_t ttl_ms; /* destroyed this long after creation; 0: never */
	const struct env_var *env; /* defaults of every exec, at most 256 */
	size_t n_env;
	/* default of every exec and of relative paths; {NULL}: the template's, else /workspace */
	struct str cwd;
	/* only from the operator, never from an agent; at most 32 */
	const struct sandbox_mount *mounts;
	size_t n_mounts;
	struct str record; /* opaque to the box, at most RECORD_BYTES_MAX: sandbox_record() */
};

/* Limits of all variables of a sandbox together, and of a caller's record. */
enum { ENV_BYTES_MAX = 96 * 1024, RECORD_BYTES_MAX = 32 * 1024 };

/* sb is borrowed until the callback returns: call sandbox_ref() to keep it. NULL with err. */
typedef void (*sandbox_cb)(void *arg, struct sandbox *sb, const struct err *err);

/* Takes a ready sandbox from the pool if there is one and the spec has no mounts; else makes
 * one. */
void sandbox_create_start(struct box *box, const struct sandbox_spec *spec, sandbox_cb on_done,
			  void *arg);
/* Whether that failed by the mount at this place of the spec. */
bool sandbox_mount_failed(struct str guest, const struct err *err);

/* Makes n sandboxes (1 to 64), all or none, with the source's files, limits, environment and time
 * to live as of one instant. Processes are not copied. Forking an idle source (no process but the
 * first) takes constant time, whatever its size; a busy one is frozen while its changed files are
 * copied. ids: n ids, borrowed for the call, or NULL. children is borrowed until the callback
 * returns. */
typedef void (*fork_cb)(void *arg, struct sandbox *const *children, size_t n,
			const struct err *err);
void sandbox_fork_start(struct sandbox *source, uint32_t n, const struct str *ids, fork_cb on_done,
			void *arg);

/* Ends the sandbox: its execs first, with ERR_CANCELLED. Done when nothing of it is left on the
 * host. */
void sandbox_destroy_start(struct sandbox *sb, sandbox_cb on_done, void *arg);

/* Freezes all processes and the timeouts of programs until the sandbox is resumed. Meanwhile
 * exec_start() and file operations fail with ERR_PAUSED; fork and destroy still work. ERR_CONFLICT
 * during a fork, pause or resume, and if the sandbox is already in the wanted state. */
void sandbox_pause_start(struct sandbox *sb, sandbox_cb on_done, void *arg);
void sandbox_resume_start(struct sandbox *sb, sandbox_cb on_done, void *arg);
bool sandbox_paused(const struct sandbox *sb);

/* Writes the sandbox's changes relative to its template to fd. Takes fd and closes it. The sandbox
 * is frozen until on_done, so the other end must be read promptly. Done: everything is written.
 * Sockets, pipes, devices and mounts are left out. */
enum sandbox_write {
	/* An OCI layer (with whiteouts), without files whose names begin with ".wh.". The caller
	 * appends the zeros that end an archive. ERR_TOO_LARGE: a path or the whole does not fit an
	 * archive. */
	SANDBOX_WRITE_TAR,
	/* The same, of /workspace alone: changes to what sandbox_attach_start() has put there, else
	 * all of it. Paths begin with "workspace". */
	SANDBOX_WRITE_WORKSPACE,
	/* for each path: a byte of enum diff, a byte of enum file_type, the path and a NUL */
	SANDBOX_WRITE_NAMES,
};
void sandbox_write_start(struct sandbox *sb, enum sandbox_write what, int fd, sandbox_cb on_done,
			 void *arg);

/* Whether what SANDBOX_WRITE_WORKSPACE has written are changes to an attached tree; known when it
 * is done. */
bool sandbox_attached(const struct sandbox *sb);

/* Shows the files of a folder's root/workspace/ at /workspace, copy-on-write, in a time that does
 * not depend on their number. The folder is locked (flock(2), shared) while sandboxes use it, and
 * its owner is the sandbox's user inside. Forks have it, too. ERR_CONFLICT: something runs in the
 * sandbox, its /workspace is not empty, or it has a tree already. */
void sandbox_attach_start(struct sandbox *sb, const char *folder, sandbox_cb on_done, void *arg);

/* Name of the folder of the sandbox's image, known once sandbox_write_start() is done; "" for the
 * host. */
const char *sandbox_base(const struct sandbox *sb);

/* The same for a template. */
int box_base(struct box *box, struct str template, char ret[SANDBOX_BASE_MAX],
	     struct err *e) MUST_USE;

/* The folder of holt-warden and the other helpers of this build or installation. */
int box_helpers(char *ret, size_t size, struct err *e) MUST_USE;

/* Path of a program installed beside holt-warden. */
int box_program(const struct box *box, const char *name, char *ret, size_t size,
		struct err *e) MUST_USE;

struct sandbox *sandbox_ref(struct sandbox *sb);
void sandbox_unref(struct sandbox *sb); /* NULL-safe; does not destroy */

const char *sandbox_id(const struct sandbox *sb);
/* Where its programs start, and relative paths; an absolute path. */
const char *sandbox_cwd(const struct sandbox *sb);
const char *sandbox_template(const struct sandbox *sb);
const struct limits *sandbox_limits(const struct sandbox *sb);
bool sandbox_from_pool(const struct sandbox *sb);
bool sandbox_live(const struct sandbox *sb);
int64_t sandbox_ttl_left_ms(const struct sandbox *sb); /* -1: none */
bool sandbox_adopted(const struct sandbox *sb); /* made by an earlier process */

/* Counts from now; 0: none. */
int sandbox_set_ttl(struct sandbox *sb, uint64_t ttl_ms, struct err *e) MUST_USE;
/* Destroyed when there was no process like this one for so long; 0: not. */
int sandbox_set_idle(struct sandbox *sb, uint32_t idle_ms, struct err *e) MUST_USE;

/* The record from the spec or the last sandbox_set_record(), which survives into a later process.
 * A fork has its source's. Borrowed until it is set again. */
struct str sandbox_record(const struct sandbox *sb);
int sandbox_set_record(struct sandbox *sb, struct str record, struct err *e) MUST_USE;

/* ---- usage --------------------------------------------------------------------------------- */

/* The use of a sandbox, as the kernel counts it. has_x is false for what this host does not
 * count. */
struct usage {
	bool lives; /* false: it has ended, and all else is empty */
	bool has_memory, has_memory_peak, has_cpu, has_pids, has_disk;
	uint64_t memory, memory_peak; /* bytes, processes and files together */
	uint64_t cpu_us; /* CPU time since it was made */
	uint64_t pids; /* processes and threads, the first process counted */
	uint64_t disk; /* bytes */
	/* since this process made or adopted it: */
	uint64_t execs, execs_running;
	/* in: standard input, files written, data received by its ports; out: output of programs,
	 * files read, data sent by its ports */
	uint64_t bytes_in, bytes_out;
};

enum { USAGE_MAX = 64 };

/* Reports on 1 to USAGE_MAX sandboxes, in their order. With n 0 it reports one total of all,
 * including the pool, with only memory, pids and cpu. Answers within 3 s. u is borrowed until the
 * callback returns. */
typedef void (*usage_cb)(void *arg, const struct usage *u, size_t n, const struct err *err);
void usage_start(struct box *box, struct sandbox *const *of, size_t n, usage_cb on_done, void *arg);

/* ---- ports ----------------------------------------------------------------------------- */

/* Connects to a TCP port in a sandbox, at 127.0.0.1, else at [::1]. The callback takes fd, which is
 * non-blocking and not shared with the sandbox. ERR_PORT: nothing listens, or the server did not
 * accept within 10 s; ERR_PAUSED. When the sandbox ends, its connections are closed as by any peer.
 */
struct dial;
typedef void (*dial_cb)(void *arg, int fd, const struct err *err);
struct dial *sandbox_dial_start(struct sandbox *sb, uint16_t port, dial_cb on_done, void *arg);
void sandbox_dial_cancel(struct dial *d);

/* Makes 1 to SANDBOX_SOCKETS_MAX sockets in a sandbox's network, bound to these addresses of
 * 127.0.0.0/8; those of TCP listen. All or none. They last until they are closed or the sandbox
 * ends, also while it sleeps. The callback takes fds that it sets to -1, the others are closed
 * after it; there may be fewer than n, where this process has no descriptors left. -1: no callback
 * follows. ERR_CONFLICT: a program of the sandbox has a port, or the sandbox is waking up. */
enum { SANDBOX_SOCKETS_MAX = 64 };
struct sandbox_address {
	uint32_t ip; /* in host order */
	uint16_t port;
	bool datagram; /* UDP */
};
typedef void (*sockets_cb)(void *arg, int *fds, size_t n, const struct err *err);
int sandbox_sockets_start(struct sandbox *sb, const struct sandbox_address *at, size_t n,
			  sockets_cb on_done, void *arg, struct err *e) MUST_USE;

/* Calls on_out when bytes_out of its usage has reached this, at once or while it counts: on_out
 * must not change the sandbox. UINT64_MAX: never. */
void sandbox_watch_out(struct sandbox *sb, uint64_t bytes, void (*on_out)(void *arg), void *arg);
uint64_t sandbox_bytes_out(const struct sandbox *sb);

/* Adds bytes that such connections carried to the sandbox's usage. */
void sandbox_carried(struct sandbox *sb, uint64_t in, uint64_t out);

/* ---- exec ---------------------------------------------------------------------------------- */

/* Limits of arguments and environment together, in bytes, and of the number of arguments. */
enum { EXEC_BYTES_MAX = 96 * 1024, EXEC_ARGS_MAX = 4096 };

/* A controlling terminal for the program, whose output is then all EXEC_STDOUT. */
struct exec_terminal {
	unsigned columns, rows; /* 1 to 9999 */
	struct str term; /* the variable TERM; {NULL}: the sandbox's */
};

/* A variable of one program that nothing else keeps; its bytes are wiped here and in init once
 * it runs. as_file: they are in a file that exists as long as a process of the program has it open,
 * and the variable has its name. */
struct exec_secret {
	struct str name, value; /* as env_var's; no other variable has that name */
	bool as_file;
};

struct exec_spec {
	const struct str *argv; /* argv[0] without '/' is searched in PATH; none: the template's */
	size_t n_argv;
	struct str shell; /* instead of argv: a line for bash -c, or for sh -c without bash */
	const struct env_var *env; /* overrides the sandbox's defaults */
	size_t n_env;
	const struct exec_secret *secrets; /* override the sandbox's defaults, too */
	size_t n_secrets;
	struct str cwd; /* {NULL}: the sandbox's */
	struct exec_how how;
	uint64_t timeout_ms; /* 0: none; at its end the whole process tree is killed */
	bool stdin_open; /* exec_write() will follow; else stdin is /dev/null */
	/* used instead of pipes, with stdin open; NULL: none */
	const struct exec_terminal *terminal;
};

enum exec_stream { EXEC_STDOUT = 1, EXEC_STDERR = 2 };

enum exec_end {
	EXEC_EXITED, /* exit_code */
	EXEC_SIGNALED, /* signal; exit_code is 128 + signal */
	EXEC_TIMED_OUT, /* killed at its timeout; exit_code 124 */
};

struct exec_result {
	enum exec_end end;
	int exit_code;
	int signal; /* 0: none */
	bool hit_memory; /* the kernel killed one of its processes at the memory limit */
	bool hit_pids; /* a fork failed at the pids limit; always false under rlimit */
	bool hit_disk; /* the disk limit was reached when it ended */
	uint64_t wall_us;
	uint64_t cpu_us; /* user and system, it and its waited-for children */
	uint64_t peak_bytes; /* largest resident size of one of those processes */
};

struct exec_events {
	/* Output as it arrives; borrowed until it returns. on_exit follows the last. */
	void (*on_output)(void *arg, enum exec_stream stream, const char *p, size_t n);
	/* Called exactly once; the exec is freed afterwards. err: the program never ran
	 * (command_not_found, …), or the sandbox was lost or destroyed; result is NULL then. */
	void (*on_exit)(void *arg, const struct exec_result *result, const struct err *err);
};

struct exec;

/* Starts a program. Any number may run at once. NULL with *e if it is refused at once; else on_exit
 * follows. spec is borrowed for the call only; events until on_exit. */
struct exec *exec_start(struct sandbox *sb, const struct exec_spec *spec,
			const struct exec_events *events, void *arg, struct err *e) MUST_USE;

/* Writes bytes to stdin, or queues what its pipe does not take (copied). ERR_LIMIT: more than 1 MiB
 * waits; try again from on_drain, which follows once nothing waits any more. After the program has
 * closed its stdin, bytes are dropped without an error. */
int exec_write(struct exec *x, const char *p, size_t n, struct err *e) MUST_USE;
size_t exec_waiting(const struct exec *x); /* bytes queued for stdin */

/* False once the program has closed its stdin. */
bool exec_reads(const struct exec *x);
void exec_on_drain(struct exec *x, void (*on_drain)(void *arg), void *arg);
/* Closes stdin after the queued bytes. On a terminal this types the end-of-file character, which
 * only a program that reads lines notices. */
void exec_close_stdin(struct exec *x);

/* Resizes its terminal. ERR_INVALID: a bad size, or there is no terminal. */
int exec_resize(struct exec *x, unsigned columns, unsigned rows, struct err *e) MUST_USE;

/* Stops or resumes reading a stream. The program blocks once its pipe or terminal is full. Output
 * that is in the pipe when the program ends is delivered nevertheless. */
void exec_hold(struct exec *x, enum exec_stream stream, bool hold);

/* Sends a signal to the program's process group. */
void exec_signal(struct exec *x, int signal);

/* Kills the whole process tree; on_exit still follows, with EXEC_SIGNALED. */
void exec_kill(struct exec *x);

/* ---- files --------------------------------------------------------------------------------- */
/*
 * Paths are absolute, or relative to the sandbox's working directory; at most 4095 bytes and no
 * NUL. The sandbox's first process resolves them inside the sandbox, with the rights of its user,
 * so no path can name a file of the host. Symlinks are followed inside. Only regular files on the
 * sandbox's own file systems are read and written; other files give ERR_NOT_A_FILE.
 */
struct file_stat {
	enum file_type type;
	uint32_t mode; /* permission bits */
	uint64_t size;
	int64_t mtime_ms; /* since the epoch */
	/* The identity of a file that was read, as fstat(2) says. Else 0. */
	uint64_t dev, ino;
	/* The sandbox says so, and may lie: they tell files of this one sandbox apart. */
	bool told;
};

typedef void (*file_cb)(void *arg, const struct err *err);
typedef void (*file_read_cb)(void *arg, struct str bytes, const struct file_stat *st,
			     const struct err *err);
typedef void (*file_stat_cb)(void *arg, const struct file_stat *st, const struct err *err);

struct file_entry {
	struct str name;
	struct file_stat st;
};
/* truncated: there were more than FILE_LIST_MAX entries. Sorted by name. */
typedef void (*file_list_cb)(void *arg, const struct file_entry *entries, size_t n, bool truncated,
			     const struct err *err);

/* Reads up to max bytes (1 to FILE_READ_MAX) at offset; fewer only at the end of the file. */
void file_read_start(struct sandbox *sb, struct str path, uint64_t offset, size_t max,
		     file_read_cb on_done, void *arg);

struct file_write_opts {
	uint32_t mode; /* permission bits of a new file; 0: 0644. An existing one keeps its mode. */
	bool make_parents; /* make missing directories, mode 0755 */
	/* An existing file also keeps its owner, else the write fails. In a folder of the host,
	 * file and directory are on the disk when it is done. */
	bool durable;
};

/* Replaces the whole file atomically: readers see the old or the new content. bytes are borrowed
 * until on_done. */
void file_write_start(struct sandbox *sb, struct str path, struct str bytes,
		      const struct file_write_opts *opts, file_cb on_done, void *arg);

void file_stat_start(struct sandbox *sb, struct str path, file_stat_cb on_done, void *arg);
void file_list_start(struct sandbox *sb, struct str path, file_list_cb on_done, void *arg);
/* With parents, missing parents are made, and an existing directory is no error. */
void file_mkdir_start(struct sandbox *sb, struct str path, bool parents, file_cb on_done,
		      void *arg);
void file_remove_start(struct sandbox *sb, struct str path, bool recursive, file_cb on_done,
		       void *arg);
void file_move_start(struct sandbox *sb, struct str from, struct str to, file_cb on_done,
		     void *arg);

/* ---- trees of files ------------------------------------------------------------------------ */
/*
 * A transfer is a stream between the sandbox and a descriptor of the caller. The sandbox reads or
 * writes that descriptor itself, so a slow peer slows it down. A transfer ends with on_done, or
 * without a callback by file_transfer_stop().
 */
struct file_transfer;

struct file_archive_opts {
	const struct str *leave_out; /* names of entries directly in the directory; at most 64 */
	size_t n_leave_out;
	bool exact; /* ERR_PATH_DENIED where something can't be read, whoever owns it */
	bool named; /* all names begin with the directory's own; else with nothing */
};

/* Writes a tar archive of a directory, or of one file under its own name, to `to`, which it takes.
 * The archive holds only files, directories and links. Other file systems below the directory, and
 * unreadable directories of other users, appear as empty directories. Unless it is exact, a comment
 * at its end counts and names what else is left out (tar_reader.comment). After a failure in the
 * middle the archive lacks its end. */
struct file_transfer *file_archive_start(struct sandbox *sb, struct str path,
					 const struct file_archive_opts *opts, int to,
					 file_cb on_done, void *arg);

/* What stands at the top of a project folder and programs of the host act on: .git and others
 * (docs/sandboxes.md). Static texts; returns how many. */
enum { PROJECT_NAMES_MAX = 64 };
size_t box_project_names(struct str ret[PROJECT_NAMES_MAX]);

struct file_upload_opts {
	/* The archive has whiteouts: ".wh.NAME" removes NAME, ".wh..wh..opq" empties its directory;
	 * other names that begin with ".wh..wh." are ignored. */
	bool changes;
	/* Likewise, to files that are in use: each file and link takes the place of the old one in
	 * one step and keeps its owner, and ".wh.NAME" removes a file or an empty directory only.
	 * The directory itself keeps mode and time. */
	bool exact;
	/* An entry below a mount, or in its place, is skipped, and the mount stays as it is.
	 * Otherwise that is ERR_PATH_DENIED. */
	bool pass_mounts;
};

/* Unpacks a tar archive from `from`, which it takes, into a directory. Links are not followed.
 * ERR_PATH_DENIED: an entry would leave the directory; ERR_INVALID: not an archive, or an entry
 * that is no file, directory or link. Files unpacked before a failure stay. */
struct file_transfer *file_upload_start(struct sandbox *sb, struct str path,
					const struct file_upload_opts *opts, int from,
					file_cb on_done, void *arg);

struct file_change {
	enum change_kind kind;
	uint32_t cookie; /* of a move: equal in both of its changes; else 0 */
	bool is_directory;
	struct str path; /* below the directory */
};

/* Reports changes in a directory, and with recursive in all below it, from CHANGE_READY on.
 * CHANGE_OVERFLOW: changes were lost. on_done follows CHANGE_ENDED or a failure. ERR_TOO_LARGE:
 * more than 8192 directories. */
struct file_transfer *file_watch_start(struct sandbox *sb, struct str path, bool recursive,
				       void (*on_change)(void *arg, const struct file_change *c),
				       file_cb on_done, void *arg);
/* Stops or resumes the reports. */
void file_watch_hold(struct file_transfer *t, bool hold);

/* Ends a transfer; no callback comes afterwards. Must not be called after on_done. */
void file_transfer_stop(struct file_transfer *t);

/* ---- processes ----------------------------------------------------------------------------- */

/* pids are those inside the sandbox. The process chooses command itself: untrusted bytes. */
struct process {
	uint32_t pid;
	uint32_t parent; /* 0: outside the sandbox */
	char state; /* proc(5): R runs, S and D wait, T was stopped, Z has ended; '?' else */
	uint64_t cpu_ms; /* user and system */
	uint64_t bytes; /* resident */
	uint64_t age_ms;
	/* arguments, separated by spaces, or the name in brackets; cut at PROCESS_COMMAND_MAX */
	struct str command;
};

/* All processes but the first, sorted by pid; borrowed until the callback returns. truncated: there
 * are more than PROCESS_LIST_MAX. */
typedef void (*process_list_cb)(void *arg, const struct process *p, size_t n, bool truncated,
				const struct err *err);
void process_list_start(struct sandbox *sb, process_list_cb on_done, void *arg);

enum { PROCESS_SIGNAL_MAX = 64 };

/* ERR_PROCESS_NOT_FOUND; ERR_INVALID for the first process, and for a bad signal number. */
typedef void (*process_cb)(void *arg, const struct err *err);
void process_signal_start(struct sandbox *sb, uint32_t pid, int signal, process_cb on_done,
			  void *arg);
/* The same for the process group of a program. While its terminal is being opened, the signal is
 * kept for its start, and the callback comes before this returns. ERR_PROCESS_NOT_FOUND: the
 * program has ended. */
void exec_signal_start(struct exec *x, int signal, process_cb on_done, void *arg);
