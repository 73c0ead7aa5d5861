#pragma once
/*
 * The two private protocols of the engine, both over SOCK_SEQPACKET pairs between processes of one
 * build, so plain structs in host order:
 *
 * 	hub <-> warden	sandboxes are made, forked, ended (WM_*)
 * 	hub <-> init	programs and files of one sandbox (IM_*)
 *
 * A warden that outlives its hub (box/warden/keep.c) listens for the next one, over WARDEN_SOCKET
 * in a folder of theirs. It says WM_GREET, the one message that no build may change; a hub of
 * another build hangs up then, one of the same says WM_HELLO, and gets what the warden has:
 * WM_READY, then WM_ADOPT for each sandbox.
 *
 * The warden trusts nothing it reads but its shape is fixed; the hub treats what an init says as
 * hostile, since the sandbox's code might have taken it over: lengths are checked, descriptors
 * are checked to be regular files, ids are looked up.
 */
#include <stdint.h>

#include "box/wire/limits.h"
#include "box/archive/tar_tree.h"

enum {
	WIRE_VERSION = 2,
	WIRE_MAX = 160 * 1024, /* one message; below the default socket buffer */
	WIRE_FORK_MAX = 64,
	WIRE_USAGE_MAX = 64,
	WIRE_MOUNTS_MAX = 32,
	WIRE_BUILD_MAX = 40,
	WIRE_IMAGE_MAX = 72,
	WIRE_PATH_MAX = 4096, /* with the NUL */
	WIRE_CLOSED_MAX = 4,
	WIRE_PIECE_MAX = 64 * 1024, /* of a file; init keeps the memory that it came in */
	TERMINALS_MAX = 64, /* of one sandbox */
	WARDEN_FD = 3, /* the hub's socket in a new warden */
	/* in one that outlives its hub, besides: */
	WARDEN_LISTENER_FD = 4, /* bound, not yet listening */
	WARDEN_LOCK_FD = 5, /* who holds the lock on it is this folder's warden */
	WARDEN_DIR_FD = 6, /* that folder */
	INIT_FD = 3, /* the control socket in a new init */
	INIT_OOM_FD = 4, /* counters of the sandbox's cgroup to read; may be closed */
	INIT_PIDS_FD = 5,
};

#define WARDEN_SOCKET "socket"
#define WARDEN_LOCK "lock"

/* ---- hub <-> warden ------------------------------------------------------------------------- */

enum wm_type {
	WM_HELLO = 1, /* hub: wm_hello */
	WM_READY, /* warden: wm_ready */
	WM_CREATE, /* hub: wm_create, then the mounts */
	WM_CREATED, /* warden: wm_created, one descriptor for each: the init's socket */
	WM_FORK, /* hub: wm_fork */
	WM_DESTROY, /* hub: wm_destroy */
	WM_DESTROYED, /* warden: wm_head */
	WM_FAILED, /* warden: wm_failed, instead of any other answer */
	WM_LOST, /* warden, unasked: wm_lost */
	WM_POOL, /* warden, unasked: wm_pool */
	WM_PAUSE, /* hub: wm_pause */
	WM_PAUSED, /* warden: wm_head; it is as was asked */
	WM_RECORD, /* hub: wm_record, then the record */
	WM_END, /* hub: wm_head; from now on all ends with this hub */
	WM_ADOPT, /* warden, after WM_READY: wm_adopt, then the record; the init's socket with it */
	WM_USAGE, /* hub: wm_usage */
	WM_USED, /* warden: wm_used */
	WM_WRITE, /* hub: wm_write; the descriptor to write to with it */
	WM_WRITTEN, /* warden: wm_written; all of it is written */
	WM_SOCKET, /* hub: wm_socket */
	WM_SOCKET_MADE, /* warden: wm_head; the socket with it, not yet connected */
	WM_SLEEP, /* hub: wm_sleep; its init is ended */
	WM_ASLEEP, /* warden: wm_head; it has ended */
	WM_WAKE, /* hub: wm_sleep; there is to be an init again, if there is none */
	WM_AWAKE, /* warden: wm_head; the init's socket with it */
	WM_GREET = 0x686f6c74, /* warden: wm_greet */
};

struct wm_head {
	uint32_t type;
	uint32_t seq; /* of the request; the answer repeats it; 0 when unasked */
};

/* Never changes: what builds that differ say to each other. Unless it is free, the warden hangs
 * up. */
enum wm_greet_state { WM_GREET_FREE, WM_GREET_BUSY, WM_GREET_ENDING };

struct wm_greet {
	struct wm_head h;
	uint32_t version;
	uint32_t state; /* enum wm_greet_state */
	char build[WIRE_BUILD_MAX];
};

/* To a warden that has lived on, with one descriptor: the hub's standard error. */
struct wm_hello {
	struct wm_head h;
	uint32_t version;
	char build[WIRE_BUILD_MAX];
	uint32_t kept; /* the sandboxes outlive the hub */
	uint64_t linger_ms; /* at most so long without another one */
	uint32_t pool;
	uint32_t networks;
	uint32_t max_sandboxes;
	uint64_t files; /* soft limit of descriptors that the user's other programs have */
	struct limits limits; /* of pooled sandboxes, complete */
	char allow[256];
	/* absolute paths of folders that no sandbox is given, see warden/closed.h; "": none */
	char closed[WIRE_CLOSED_MAX][WIRE_PATH_MAX];
};

struct wm_ready {
	struct wm_head h;
	uint32_t driver; /* enum limit_driver */
	uint32_t rootless;
	uint32_t can_freeze; /* else a busy source must be stopped by its init */
	uint32_t adopted; /* how many WM_ADOPT follow */
	uint32_t epoch; /* of their IM_RESET */
};

struct wm_create {
	struct wm_head h;
	struct limits limits; /* complete */
	char image[4096]; /* the absolute path of an image's folder; "": the template host */
	uint32_t of_host; /* the host's directories stand over that image, too */
	uint32_t n_mounts; /* wm_mount and the two paths with their NULs follow for each */
};

struct wm_mount {
	uint32_t host_len, guest_len; /* with the NUL */
	uint32_t writable, pad;
	uint64_t size; /* bytes that the host must end it at; 0: none */
};

/* What the source's init said of it. The hub asks nothing of the init until the fork is
 * answered. */
enum wm_fork_how {
	WM_FORK_IDLE, /* nothing runs but init: its layer can be frozen in place */
	WM_FORK_BUSY, /* something runs: freeze it, copy */
	WM_FORK_STOPPED, /* something runs, and init has stopped it all: copy */
};

struct wm_fork {
	struct wm_head h;
	uint64_t key;
	uint32_t n;
	uint32_t how; /* enum wm_fork_how */
};

enum wm_write_what {
	WM_WRITE_TAR, /* a layer of OCI's, without an end */
	WM_WRITE_NAMES, /* for each: enum diff, enum file_type, its path from / with a NUL */
};

/* What a sandbox has changed against its template. It stands still until that is written; the hub
 * asks nothing of its init meanwhile. */
struct wm_write {
	struct wm_head h;
	uint64_t key;
	uint32_t how; /* enum wm_fork_how */
	uint32_t what; /* enum wm_write_what */
};

struct wm_written {
	struct wm_head h;
	char image[WIRE_IMAGE_MAX]; /* the name of its image's folder; "": it has none */
};

struct wm_destroy {
	struct wm_head h;
	uint64_t key;
};

struct wm_pause {
	struct wm_head h;
	uint64_t key;
	uint32_t paused; /* 0: it goes on */
	uint32_t pad;
};

struct wm_created {
	struct wm_head h;
	uint32_t n;
	uint32_t from_pool;
	uint64_t keys[WIRE_FORK_MAX];
};

struct wm_failed {
	struct wm_head h;
	struct err err;
};

struct wm_lost {
	struct wm_head h;
	uint64_t key;
};

struct wm_pool {
	struct wm_head h;
	uint32_t ready;
};

/* What the next hub has to know of a sandbox. Until it is there for all of one WM_CREATED, that is
 * not confirmed, and undone when the hub goes. */
struct wm_record {
	struct wm_head h;
	uint64_t key;
	uint64_t dies_at_ms; /* of the monotonic clock; 0: never */
	uint32_t paused;
	uint32_t pad;
};

/* What the record itself begins with. Then come the working directory, n_env variables and n_argv
 * arguments of the template, each with its NUL, and record_n bytes of the hub's own. The warden
 * only keeps it: a later hub reads what an earlier one wrote, which may be of another version, so
 * its form belongs to what both must agree on. */
struct kept_sandbox {
	struct limits limits;
	uint64_t ttl_ms;
	uint32_t n_env, n_argv, record_n;
	uint32_t from_pool;
	char id[65];
	char template[256];
};

struct wm_adopt {
	struct wm_head h;
	uint64_t key;
	uint64_t dies_at_ms;
	uint32_t paused;
	uint32_t asleep; /* 1: there is no socket */
};

/* What sandboxes use. n 0: all of this warden together, the pool's among them. */
struct wm_usage {
	struct wm_head h;
	uint32_t n, pad;
	uint64_t keys[WIRE_USAGE_MAX];
};

/* What can't be had has no bit. */
enum wm_use_has {
	WM_USE_LIVES = 1 << 0, /* the sandbox is there */
	WM_USE_MEMORY = 1 << 1,
	WM_USE_PEAK = 1 << 2,
	WM_USE_CPU = 1 << 3,
	WM_USE_PIDS = 1 << 4,
	WM_USE_DISK = 1 << 5,
};

struct wm_use {
	uint32_t has, pad; /* enum wm_use_has */
	uint64_t memory, memory_peak, cpu_us, pids, disk;
};

/* In the order of the keys; of all together it is one. */
struct wm_used {
	struct wm_head h;
	uint32_t n, pad;
	struct wm_use of[WIRE_USAGE_MAX];
};

/* A sandbox in which nothing runs, as its init has said, needs no init: its files and limits stay.
 * Whatever the warden can't do, the sandbox is as it was. */
struct wm_sleep {
	struct wm_head h;
	uint64_t key;
};

/* A TCP socket in a sandbox's network. */
struct wm_socket {
	struct wm_head h;
	uint64_t key;
	uint32_t family; /* AF_INET or AF_INET6 */
	uint32_t pad;
};

/* ---- hub <-> init --------------------------------------------------------------------------- */

enum im_type {
	/* during set-up, between the child that becomes init and the warden */
	IM_PARTS =
		1, /* warden: im_parts; descriptors: the root, then the counters that are there */
	IM_MAP_ME, /* child: write my uid map, then answer with any message */
	IM_SETUP_FAILED, /* child: im_setup_failed */
	IM_READY, /* init: im_head */
	/* hub to init */
	IM_EXEC, /* im_exec; 2 or 3 descriptors: [stdin,] stdout, stderr; or 1, a terminal */
	IM_SIGNAL, /* im_signal */
	IM_QUIESCE, /* im_head; answered by IM_QUIET */
	IM_STOP, /* im_head; stop every process; answered by IM_QUIET when all have stopped */
	IM_CONTINUE, /* im_head */
	IM_FILE, /* im_file; answered by IM_FILE_DONE */
	IM_PROCESS, /* im_process; answered by IM_PROCESS_DONE */
	IM_TERMINAL, /* im_head; answered by IM_TERMINAL_DONE */
	IM_RESET, /* im_reset, its id an epoch: another hub begins; answered by IM_WAS_RESET */
	/* init to hub */
	IM_EXIT, /* im_exit */
	IM_QUIET, /* im_quiet */
	/* im_file_done; one descriptor for FILE_OP_READ and FILE_OP_WRITE; of trees im_tree_done */
	IM_FILE_DONE,
	IM_PROCESS_DONE, /* im_process_done, and with PROCESS_OP_LIST its entries */
	IM_TERMINAL_DONE, /* im_terminal_done; one descriptor: the directory of terminals */
	IM_WAS_RESET, /* im_quiet; nothing of the hubs before comes after it */
};

struct im_head {
	uint32_t type;
	uint32_t id; /* the hub's number for the exec or the question */
};

/* Descriptors: the root, the counters that are there, the groups to enter. */
struct im_parts {
	struct im_head h;
	uint32_t fill; /* 1: a directory to be copied into the root is there */
	uint32_t oom, pids; /* 1: the counter is there */
	uint32_t n_tasks;
};

struct im_setup_failed {
	struct im_head h;
	int32_t errnum;
	char stage[60];
};

#define IM_STAGE_MOUNT "mount on " /* begins the stage of a mount that the operator asked for */

/* argc words, then envc "NAME=value" strings, each with its NUL, after a working directory. With
 * `shell` argv is one word: the line. */
struct im_exec {
	struct im_head h;
	uint32_t argc, envc;
	uint32_t has_stdin;
	uint32_t shell;
	uint32_t terminal; /* 1: it leads a session whose controlling terminal that is */
	uint32_t files; /* that it may have open; 0: as many as the host gives */
};

enum { IM_SIGNAL_TREE = 1 };

struct im_signal {
	struct im_head h;
	int32_t signal;
	uint32_t flags; /* IM_SIGNAL_TREE: kill it and all that it started */
};

/* Where starting a program failed. */
enum im_exec_stage { IM_STAGE_RAN, IM_STAGE_FORK, IM_STAGE_CWD, IM_STAGE_EXEC };

struct im_exit {
	struct im_head h;
	uint32_t stage; /* enum im_exec_stage; other than RAN: errnum says why, the rest is 0 */
	int32_t errnum;
	int32_t status; /* of wait4 */
	uint32_t oom_kills, pids_hits; /* of the sandbox while it ran */
	uint32_t disk_full; /* 1: there was no room left for its files when it ended */
	uint64_t cpu_us, peak_bytes;
};

struct im_reset {
	struct im_head h;
	uint32_t stay_stopped; /* 1: what was stopped by IM_STOP stays so, as it is paused */
	uint32_t pad;
};

struct im_quiet {
	struct im_head h;
	uint32_t processes; /* other than init; in answer to IM_STOP: those that would not stop */
	/* of System V's IPC, which last without a process; in answer to IM_QUIESCE */
	uint32_t objects;
	uint32_t pad;
};

enum file_op {
	FILE_OP_READ, /* path; gives a descriptor of a regular file */
	/* path, mode, then the first piece of its bytes; gives a token, unless that was all. Of a
	 * folder of the host, which may be slow, a descriptor of an empty new file beside it: the
	 * piece is not used. */
	FILE_OP_WRITE,
	FILE_OP_APPEND, /* token, then another piece */
	FILE_OP_COMMIT, /* token: the new file takes the place of path */
	FILE_OP_ABORT, /* token */
	FILE_OP_STAT,
	FILE_OP_LIST,
	FILE_OP_MKDIR,
	FILE_OP_REMOVE,
	FILE_OP_MOVE, /* two paths */
	/* Each done by a process of its own, which answers with im_tree_done; a descriptor goes
	 * with the message: */
	FILE_OP_ARCHIVE, /* path, then names to leave out; it is written to */
	FILE_OP_UPLOAD, /* path of a directory; it is read from */
	FILE_OP_WATCH, /* path of a directory; it is written to, im_change by im_change */
	/* token: the id of one of those, which is killed, and answered so; it has no answer
	 * itself */
	FILE_OP_STOP,
};

enum {
	FILE_FLAG_PARENTS = 1,
	FILE_FLAG_RECURSIVE = 2,
	FILE_FLAG_CHANGES = 4,
	FILE_FLAG_LAST = 8 /* piece */
};

/* One or two absolute paths with their NULs follow. */
struct im_file {
	struct im_head h;
	uint32_t op, flags, mode, token;
};

struct im_stat {
	uint32_t type; /* enum file_type */
	uint32_t mode;
	uint64_t size;
	int64_t mtime_ms;
};

struct im_file_done {
	struct im_head h;
	int32_t errnum; /* 0: done */
	uint32_t not_a_file; /* with errnum: it is there, but not a file that may be touched so */
	uint32_t token;
	uint32_t entries, truncated; /* FILE_OP_LIST: that many im_entry, each with its name */
	uint32_t pad;
	struct im_stat st;
};

struct im_tree_done {
	struct im_file_done d; /* errnum: it could not be begun */
	struct tree_failure failure; /* else how it ended */
};

/* What has happened below a directory that is watched. */
struct im_change {
	uint32_t kind; /* enum change_kind */
	uint32_t cookie;
	uint32_t is_directory;
	/* without NUL; the path below the directory follows, no NUL, no padding */
	uint32_t path_len;
};

struct im_entry {
	struct im_stat st;
	uint32_t name_len; /* without NUL; the name follows, no NUL, no padding */
	uint32_t pad;
};

enum process_op {
	PROCESS_OP_LIST,
	PROCESS_OP_SIGNAL, /* pid, signal */
};

struct im_process {
	struct im_head h;
	uint32_t op;
	int32_t pid, signal;
	uint32_t pad;
};

struct im_process_done {
	struct im_head h;
	int32_t errnum; /* 0: done */
	uint32_t entries, truncated; /* that many im_process_entry, each with its command */
	uint32_t pad;
};

struct im_terminal_done {
	struct im_head h;
	int32_t errnum; /* 0: done */
	uint32_t pad;
};

struct im_process_entry {
	uint32_t pid, parent;
	uint32_t state; /* a letter of proc(5) */
	uint32_t command_len; /* the command follows, no NUL, no padding */
	uint64_t cpu_ms, bytes, age_ms;
};
