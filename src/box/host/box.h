#pragma once
/*
 * The sandbox engine as the hub sees it. A `struct box` owns one warden process and all sandboxes
 * that it made; when the box or its process ends, so do they, without a trace on the host. With
 * box_config.warden_dir they outlive a process that is killed: the next box of that folder finds
 * them again. What was under way then is as follows. Acknowledged (its callback was called): it is
 * there. A create or fork that was not: undone, a fork as a whole. A destroy: completed. Execs that
 * ran: ended with all that they started; what those that had ended left running runs on.
 *
 * Everything here runs on the one loop thread. An operation that takes time is started by a call
 * that returns at once and ends in exactly one callback, never from inside the starting call.
 * The `struct err` of a callback is borrowed until it returns; NULL means success.
 *
 * Sandboxes are named by the caller, or by ids from the kernel's randomness ("sbx-" and 32 hex
 * digits). A `struct sandbox *` stays valid until sandbox_unref(), also when the sandbox has ended;
 * calls on an ended one fail with ERR_SANDBOX_NOT_FOUND or ERR_GUEST.
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

struct box;
struct sandbox;

struct env_var {
	struct str name, value;
};

/* A template that is an image, and what it says of the programs in it. */
struct box_template {
	/* absolute path. root/ below it holds the files, owned by the user who runs the hub. The
	 * folder is locked (flock(2), shared) while sandboxes use it. */
	const char *folder;
	bool of_host; /* the host's /usr stands over it, as over the template "host" */
	const struct env_var *env; /* below a spec's own */
	size_t n_env;
	struct str cwd; /* where the spec names none; STR_NONE: /workspace */
	const struct str *argv; /* what an exec runs that names nothing */
	size_t n_argv;
};

/* Finds a template and has it used: use(to, t, e), whose answer is its own; t is good for that
 * call. -1 with ERR_TEMPLATE_NOT_FOUND. */
typedef int (*box_template_use)(void *to, const struct box_template *t, struct err *e);
typedef int (*box_template_find)(void *arg, struct str name, box_template_use use, void *to,
				 struct err *e);

struct box_config {
	/* where holt-warden and holt-init are; NULL: found beside the running program or in the
	 * installed place */
	const char *libexec_dir;
	uint32_t pool; /* ready sandboxes to keep, 0 to 64 */
	/* network namespaces to keep ready for others, 0 to 16: for whom makes many sandboxes
	 * beyond the pool */
	uint32_t networks;
	uint32_t max_sandboxes; /* 0: 4096 */
	struct limits limits; /* defaults for what a spec leaves 0; zeros: LIMITS_DEFAULT */
	/* comma list of isolation features (box/probe/probe.h) whose absence the operator accepts;
	 * NULL or "": none, creation fails closed */
	const char *allow;
	box_template_find find_template; /* other than "host"; NULL: there are none */
	void *find_arg;

	/* NULL, or told of each sandbox that was handed out when it has ended, whoever ended it and
	 * why, before the callback of what ended it. Nothing of it answers any more. */
	void (*on_end)(void *arg, struct sandbox *sb, const struct err *why);
	void *on_end_arg;
	/* who ends sandboxes at their time to live; here only the warden does, while there is no
	 * process */
	bool ttl_by_caller;
	/* NULL: all ends with this process. Else an absolute path, made if missing, of a folder
	 * that nobody else may enter: the sandboxes then outlive a process that is killed, and
	 * box_new() adopts those that it finds there */
	const char *warden_dir;
	uint64_t linger_ms; /* how long they wait for the next process; 0: a day */
	/* A sandbox that nothing was asked of for so long, and in which nothing runs, falls asleep:
	 * it keeps its files and limits, and no process until it is used again, which then takes as
	 * long as making one. 0: never. */
	uint64_t sleep_after_ms;
	/* absolute paths of host folders that must never be mounted, nor anything in them, nor any
	 * folder that contains them; at most CLOSED_MAX */
	const char *const *closed;
	size_t n_closed;
};
enum { CLOSED_MAX = 4 };

/* Starts the warden; requests may follow at once and wait for it. NULL with *e when it can't be
 * started at all. config is borrowed for this call only.
 *
 * With a warden_dir, a warden that is alive there is taken over instead, with its sandboxes: at the
 * return they are live, and whatever is asked of them waits until their inits have let go of what
 * was before. ERR_CONFLICT: another process has them; ERR_OTHER_BUILD: the warden there is of
 * another build, and is not spoken to; ERR_DENIED: the folder is not only ours; ERR_TIMEOUT. */
struct box *box_new(uv_loop_t *loop, const struct box_config *config, struct err *e) MUST_USE;

/* Ends every sandbox and the warden, waits until nothing of them is left (2 s at most, then the
 * warden is killed, whose helper cleans up), then calls on_closed, after which the box is gone.
 * Operations under way end with ERR_CANCELLED first. */
void box_close(struct box *box, void (*on_closed)(void *arg), void *arg);

/* The same, but with a warden_dir its sandboxes, where there are any, stay for the next process, as
 * if this one had been killed. */
void box_leave(struct box *box, void (*on_closed)(void *arg), void *arg);

/* From now on all ends with this process, however it ends. */
void box_end_with_process(struct box *box);

struct box_stats {
	const char *tier; /* "namespace" */
	const char *limits; /* limit_driver_name() */
	bool ready; /* the warden has answered; the rest is known */
	bool rootless;
	uint32_t live; /* sandboxes handed out */
	uint32_t asleep; /* of those */
	uint32_t pool_size, pool_ready;
	uint64_t created, pool_hits, pool_misses, forked, destroyed, lost;
	uint64_t execs, bytes_in, bytes_out; /* of all sandboxes, as in struct usage */
};
void box_stats(const struct box *box, struct box_stats *ret_stats);

/* Borrowed; NULL when there is none of that id. */
struct sandbox *box_find(struct box *box, struct str id);

/* Each live sandbox, in no order; f may end the one that it is given. */
void box_each(struct box *box, void (*f)(void *arg, struct sandbox *sb), void *arg);

/* ---- life ---------------------------------------------------------------------------------- */

struct sandbox_mount {
	/* absolute path of a directory or regular file on the host; ERR_DENIED for a closed one */
	struct str host;
	struct str guest; /* absolute path inside; made if missing */
	bool writable;
	/* Bytes that it may hold; 0: any. ERR_NO_QUOTA: the host does not see to that. What else is
	 * mounted in it is not shown then, but what lies below that. */
	uint64_t size;
};

enum { SANDBOX_ID_MAX = 64, SANDBOX_BASE_MAX = 72 };

/* 1 to 64 letters, digits, '-' and '_', the first a letter or digit; else ERR_INVALID. */
int sandbox_id_check(struct str id, struct err *e) MUST_USE;

/* What a sandbox is made from; all borrowed for the call only. */
struct sandbox_spec {
	struct str id; /* {NULL}: one is made. The caller sees to it that no two have the same. */
	/* "host" ({NULL} means that too), or one that box_config.find_template finds */
	struct str template;
	struct limits limits;
	uint64_t ttl_ms; /* destroyed this long after creation; 0: never */
	const struct env_var *env; /* defaults of every exec, at most 256 */
	size_t n_env;
	/* default of every exec and of relative paths; {NULL}: the template's, else /workspace */
	struct str cwd;
	const struct sandbox_mount *mounts; /* operator's only: never from an agent; at most 32 */
	size_t n_mounts;
	struct str record; /* the caller's own, at most RECORD_BYTES_MAX: sandbox_record() */
};

/* Variables of a sandbox together, and a caller's record. */
enum { ENV_BYTES_MAX = 96 * 1024, RECORD_BYTES_MAX = 32 * 1024 };

/* sb is borrowed until the callback returns: sandbox_ref() to keep it. NULL with err. */
typedef void (*sandbox_cb)(void *arg, struct sandbox *sb, const struct err *err);

/* From the pool when the spec has no mounts and a ready one is there, else made now. */
void sandbox_create_start(struct box *box, const struct sandbox_spec *spec, sandbox_cb on_done,
			  void *arg);

/* n sandboxes (1 to 64) with the source's files, limits, environment and time to live as they
 * are at one instant; processes are not copied. All n or none. An idle source (no process but the
 * first) is forked in time that does not depend on its size; a busy one is frozen while its
 * changed files are copied. ids: n names for them, borrowed for the call, or NULL. children is
 * borrowed until the callback returns. */
typedef void (*fork_cb)(void *arg, struct sandbox *const *children, size_t n,
			const struct err *err);
void sandbox_fork_start(struct sandbox *source, uint32_t n, const struct str *ids, fork_cb on_done,
			void *arg);

/* Ends everything in it; done when nothing is left of it on the host. Its execs end first, with
 * ERR_CANCELLED. */
void sandbox_destroy_start(struct sandbox *sb, sandbox_cb on_done, void *arg);

/* What runs in it stands still until it is resumed; the timeouts of its programs stand still, too.
 * Meanwhile exec_start() and the operations on files fail with ERR_PAUSED, and it can be forked and
 * destroyed. ERR_CONFLICT while it is forked, paused or resumed, and where it is as asked for. */
void sandbox_pause_start(struct sandbox *sb, sandbox_cb on_done, void *arg);
void sandbox_resume_start(struct sandbox *sb, sandbox_cb on_done, void *arg);
bool sandbox_paused(const struct sandbox *sb);

/* Writes what it has changed against what it was made from to fd, which is taken over and closed;
 * it stands still until that is done, so somebody else reads as fast as can be. Done: all of it is
 * written. Neither sockets, pipes nor devices are in it, nor what is mounted. */
enum sandbox_write {
	/* a layer of OCI's (whiteouts), of which names that begin with ".wh." are left out; the
	 * zeros at the end of an archive are the caller's to add. ERR_TOO_LARGE: it can't be in
	 * one. */
	SANDBOX_WRITE_TAR,
	/* for each path: a byte of enum diff, one of enum file_type, the path with a NUL */
	SANDBOX_WRITE_NAMES,
};
void sandbox_write_start(struct sandbox *sb, enum sandbox_write what, int fd, sandbox_cb on_done,
			 void *arg);

/* The name of the folder of the image that it stands on, once sandbox_write_start() is done; "" for
 * the host. */
const char *sandbox_base(const struct sandbox *sb);

/* The name of the folder of what is called so: as above. */
int box_base(struct box *box, struct str template, char ret[SANDBOX_BASE_MAX],
	     struct err *e) MUST_USE;

/* The path of a program that is installed beside holt-warden. */
int box_program(const struct box *box, const char *name, char *ret, size_t size,
		struct err *e) MUST_USE;

struct sandbox *sandbox_ref(struct sandbox *sb);
void sandbox_unref(struct sandbox *sb); /* NULL-safe; does not destroy */

const char *sandbox_id(const struct sandbox *sb);
const char *sandbox_template(const struct sandbox *sb);
const struct limits *sandbox_limits(const struct sandbox *sb);
bool sandbox_from_pool(const struct sandbox *sb);
bool sandbox_live(const struct sandbox *sb);
int64_t sandbox_ttl_left_ms(const struct sandbox *sb); /* -1: none */
bool sandbox_adopted(const struct sandbox *sb); /* made by an earlier process */

/* From now on; 0: none. */
int sandbox_set_ttl(struct sandbox *sb, uint64_t ttl_ms, struct err *e) MUST_USE;

/* What whoever made it, or set it last, wants to know of it in a later process; forks have their
 * source's. Borrowed until it is set again. */
struct str sandbox_record(const struct sandbox *sb);
int sandbox_set_record(struct sandbox *sb, struct str record, struct err *e) MUST_USE;

/* ---- usage --------------------------------------------------------------------------------- */

/* What a sandbox uses, by the kernel's count. What this host does not count is not there. */
struct usage {
	bool lives; /* false: it has ended, and all else is empty */
	bool has_memory, has_memory_peak, has_cpu, has_pids, has_disk;
	uint64_t memory, memory_peak; /* bytes, processes and files together */
	uint64_t cpu_us; /* of the processor, since it was made */
	uint64_t pids; /* processes and threads, the first process counted */
	uint64_t disk; /* bytes */
	/* since this process has it: */
	uint64_t execs, execs_running;
	/* in: standard input, files written, data received by its ports; out: output of programs,
	 * files read, data sent by its ports */
	uint64_t bytes_in, bytes_out;
};

enum { USAGE_MAX = 64 };

/* Of 1 to USAGE_MAX sandboxes, in their order; or with n 0 one of all, the pool's among them, of
 * which nothing is known but memory, pids and cpu. Within 3 s. u is borrowed until it returns. */
typedef void (*usage_cb)(void *arg, const struct usage *u, size_t n, const struct err *err);
void usage_start(struct box *box, struct sandbox *const *of, size_t n, usage_cb on_done, void *arg);

/* ---- its ports ----------------------------------------------------------------------------- */

/* A connection to a TCP port of a sandbox: to whoever listens on it at 127.0.0.1, else at [::1].
 * Nobody does: ERR_PORT, which is also what one is that does not accept within 10 s. fd does not
 * block, and is taken over; nobody in the sandbox has it. A paused sandbox: ERR_PAUSED. One that
 * ends with the connection open ends that too, as any peer does. */
struct dial;
typedef void (*dial_cb)(void *arg, int fd, const struct err *err);
struct dial *sandbox_dial_start(struct sandbox *sb, uint16_t port, dial_cb on_done, void *arg);
void sandbox_dial_cancel(struct dial *d);

/* What went in and out over such connections counts as its other bytes do. */
void sandbox_carried(struct sandbox *sb, uint64_t in, uint64_t out);

/* ---- exec ---------------------------------------------------------------------------------- */

/* Arguments and environment together may have 96 KiB. */
enum { EXEC_BYTES_MAX = 96 * 1024, EXEC_ARGS_MAX = 4096 };

/* A terminal of the sandbox's own, which the program leads; its output is all stdout then. */
struct exec_terminal {
	unsigned columns, rows; /* 1 to 9999 */
	struct str term; /* the variable TERM; {NULL}: the sandbox's */
};

struct exec_spec {
	const struct str *argv; /* argv[0] without '/' is looked up in PATH; none: the template's */
	size_t n_argv;
	struct str shell; /* instead of argv: a line for bash -c, or sh -c where there is no bash */
	const struct env_var *env; /* over the sandbox's defaults */
	size_t n_env;
	struct str cwd; /* {NULL}: the sandbox's */
	uint64_t timeout_ms; /* 0: none; at its end the whole process tree is killed */
	bool stdin_open; /* exec_write() will follow; else stdin is /dev/null */
	/* instead of pipes: see there; stdin is open, too. NULL: none */
	const struct exec_terminal *terminal;
};

enum exec_stream { EXEC_STDOUT = 1, EXEC_STDERR = 2 };

/* How it ended, told apart. */
enum exec_end {
	EXEC_EXITED, /* exit_code */
	EXEC_SIGNALED, /* signal; exit_code is 128 + signal */
	EXEC_TIMED_OUT, /* killed at its timeout; exit_code 124 */
};

struct exec_result {
	enum exec_end end;
	int exit_code;
	int signal; /* 0: none */
	bool hit_memory; /* the kernel killed a process of it for the memory limit */
	bool hit_pids; /* a fork failed at the pids limit; always false under rlimit */
	bool hit_disk; /* the disk limit was reached when it ended */
	uint64_t wall_us;
	uint64_t cpu_us; /* user and system, it and its waited-for children */
	uint64_t peak_bytes; /* largest resident size of one of those processes */
};

struct exec_events {
	/* Bytes as they come; borrowed until it returns. After the last, on_exit. */
	void (*on_output)(void *arg, enum exec_stream stream, const char *p, size_t n);
	/* Exactly once; after it the exec is gone. err: it never ran (command_not_found, …), or the
	 * sandbox was lost or destroyed meanwhile; result is NULL then. */
	void (*on_exit)(void *arg, const struct exec_result *result, const struct err *err);
};

struct exec;

/* Starts a program. Any number run at once. NULL with *e when refused outright; else on_exit
 * follows. spec is borrowed for the call only; events for the life of the exec. */
struct exec *exec_start(struct sandbox *sb, const struct exec_spec *spec,
			const struct exec_events *events, void *arg, struct err *e) MUST_USE;

/* Queues bytes for stdin (copied); ERR_LIMIT when more than 1 MiB wait: try again from
 * on_drain. The program having closed its stdin is no error: bytes are dropped. */
int exec_write(struct exec *x, const char *p, size_t n, struct err *e) MUST_USE;
size_t exec_waiting(const struct exec *x); /* bytes that wait for it */

/* Whether anybody will read what is written: false once the program has closed its stdin. */
bool exec_reads(const struct exec *x);
void exec_on_drain(struct exec *x, void (*on_drain)(void *arg), void *arg);
/* After what is queued. Of a terminal only who reads lines can be told: its end-of-file character
 * is typed. */
void exec_close_stdin(struct exec *x);

/* The new size of its terminal; ERR_INVALID for one that can't be, or where there is none. */
int exec_resize(struct exec *x, unsigned columns, unsigned rows, struct err *e) MUST_USE;

/* Takes no more of a stream, so that the program waits once its pipe or terminal is full; or goes
 * on. What is in the pipe when the program ends comes all the same. */
void exec_hold(struct exec *x, enum exec_stream stream, bool hold);

/* Sends a signal to the program's process group. */
void exec_signal(struct exec *x, int signal);

/* Kills the whole process tree; on_exit still follows, with EXEC_SIGNALED. */
void exec_kill(struct exec *x);

/* ---- files --------------------------------------------------------------------------------- */
/*
 * Paths are absolute, or relative to the sandbox's working directory; at most 4095 bytes and no
 * NUL. They are resolved inside the sandbox, by its first process, with the rights of its user:
 * no path on the host can be meant. Symlinks are followed inside. Only regular files on the
 * sandbox's own file systems are read and written: what else a path leads to is ERR_NOT_A_FILE.
 */
struct file_stat {
	enum file_type type;
	uint32_t mode; /* permission bits */
	uint64_t size;
	int64_t mtime_ms; /* since the epoch */
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

/* Up to max bytes (1 to FILE_READ_MAX) from offset; fewer only at the end of the file. */
void file_read_start(struct sandbox *sb, struct str path, uint64_t offset, size_t max,
		     file_read_cb on_done, void *arg);

struct file_write_opts {
	uint32_t mode; /* permission bits of a new file; 0: 0644. An existing one keeps its mode. */
	bool make_parents; /* missing directories are made, mode 0755 */
};

/* Writes the whole file so that others see the old or the new content, never a part. bytes are
 * borrowed until on_done. */
void file_write_start(struct sandbox *sb, struct str path, struct str bytes,
		      const struct file_write_opts *opts, file_cb on_done, void *arg);

void file_stat_start(struct sandbox *sb, struct str path, file_stat_cb on_done, void *arg);
void file_list_start(struct sandbox *sb, struct str path, file_list_cb on_done, void *arg);
/* With parents, missing directories above are made, and one that is there already is no error. */
void file_mkdir_start(struct sandbox *sb, struct str path, bool parents, file_cb on_done,
		      void *arg);
void file_remove_start(struct sandbox *sb, struct str path, bool recursive, file_cb on_done,
		       void *arg);
void file_move_start(struct sandbox *sb, struct str from, struct str to, file_cb on_done,
		     void *arg);

/* ---- trees of files ------------------------------------------------------------------------ */
/*
 * A transfer is a stream between the sandbox and a descriptor of the caller's, of which the sandbox
 * gets the one end: it waits where the other end does. It ends when on_done is called, or nobody is
 * told after file_transfer_stop().
 */
struct file_transfer;

struct file_archive_opts {
	const struct str *leave_out; /* names of what is directly in the directory; at most 64 */
	size_t n_leave_out;
};

/* A tar archive of a directory, or of one file by its own name, is written to `to`, which is taken.
 * Only files, directories and links are in it, and of other file systems below the directory only
 * the place; so it is with directories of another user that can't be read. Where it fails in the
 * middle, the archive has no end. */
struct file_transfer *file_archive_start(struct sandbox *sb, struct str path,
					 const struct file_archive_opts *opts, int to,
					 file_cb on_done, void *arg);

struct file_upload_opts {
	/* it is the difference to what is there: ".wh.NAME" removes NAME, ".wh..wh..opq" all that
	 * was in the directory; other names that begin with ".wh..wh." are passed over */
	bool changes;
};

/* A tar archive is read from `from`, which is taken, and unpacked in a directory. Links are not
 * followed, and nothing gets outside: ERR_PATH_DENIED. ERR_INVALID: it is no archive, or has what
 * is no file, directory or link. What was unpacked before a failure stays. */
struct file_transfer *file_upload_start(struct sandbox *sb, struct str path,
					const struct file_upload_opts *opts, int from,
					file_cb on_done, void *arg);

struct file_change {
	enum change_kind kind;
	uint32_t cookie; /* of what was moved: the same from where and to where; else 0 */
	bool is_directory;
	struct str path; /* below the directory */
};

/* Tells of what happens in a directory, and with recursive in all below it, from CHANGE_READY on.
 * More than can be told of is CHANGE_OVERFLOW. on_done follows CHANGE_ENDED, or a failure.
 * ERR_TOO_LARGE: of more than 8192 directories. */
struct file_transfer *file_watch_start(struct sandbox *sb, struct str path, bool recursive,
				       void (*on_change)(void *arg, const struct file_change *c),
				       file_cb on_done, void *arg);
/* Takes no more, or goes on. */
void file_watch_hold(struct file_transfer *t, bool hold);

/* Ends it; no callback comes after it. Not after on_done. */
void file_transfer_stop(struct file_transfer *t);

/* ---- processes ----------------------------------------------------------------------------- */

/* A process as the sandbox counts it. The command is what the process says it is, in bytes. */
struct process {
	uint32_t pid;
	uint32_t parent; /* 0: it is outside */
	char state; /* proc(5): R runs, S and D wait, T was stopped, Z has ended; '?' else */
	uint64_t cpu_ms; /* user and system */
	uint64_t bytes; /* resident */
	uint64_t age_ms;
	/* its words, with spaces between them, or its name in brackets; cut at
	 * PROCESS_COMMAND_MAX */
	struct str command;
};

/* All but the first one. truncated: there were more than PROCESS_LIST_MAX. By number; borrowed
 * until it returns. */
typedef void (*process_list_cb)(void *arg, const struct process *p, size_t n, bool truncated,
				const struct err *err);
void process_list_start(struct sandbox *sb, process_list_cb on_done, void *arg);

enum { PROCESS_SIGNAL_MAX = 64 };

/* ERR_PROCESS_NOT_FOUND; ERR_INVALID for the first, and for what is no signal. */
typedef void (*process_cb)(void *arg, const struct err *err);
void process_signal_start(struct sandbox *sb, uint32_t pid, int signal, process_cb on_done,
			  void *arg);
