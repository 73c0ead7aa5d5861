#pragma once
/*
 * The two private protocols of the engine, over SOCK_SEQPACKET pairs between processes of one
 * build, so plain structs in host order:
 *
 *	hub <-> warden	sandboxes are made, forked, ended (WM_*)
 *	hub <-> init	programs and files of one sandbox (IM_*)
 *
 * A warden that outlives its hub (box/warden/keep.c) listens for the next one on WARDEN_SOCKET in
 * their common folder. It sends WM_GREET, the one message that no build may change. A hub of
 * another build hangs up then. A hub of the same build sends WM_HELLO, and gets WM_READY, then
 * WM_ADOPT for each sandbox.
 *
 * The warden trusts nothing in a message except that its form is fixed. The hub treats what an init
 * says as hostile, since the sandbox's code might control it: it checks lengths, checks that
 * descriptors are regular files, and looks up ids.
 */
#include <stdint.h>

#include "box/wire/how.h"
#include "box/wire/limits.h"
#include "box/archive/tar_tree.h"

enum {
	WIRE_VERSION = 2,
	WIRE_SECRETS_MAX = 32, /* of one program */
	WIRE_SECRET_NAME_MAX = 128, /* bytes of the variable of one in a file */
	WIRE_MAX = 160 * 1024, /* one message; below the default socket buffer */
	WIRE_FORK_MAX = 64,
	WIRE_USAGE_MAX = 64,
	WIRE_MOUNTS_MAX = 32,
	WIRE_SOCKETS_MAX = 64, /* made by one wm_socket */
	WIRE_BUILD_MAX = 40,
	WIRE_IMAGE_MAX = 72,
	WIRE_PATH_MAX = 4096, /* with the NUL */
	WIRE_CLOSED_MAX = 6,
	WIRE_PIECE_MAX = 64 * 1024, /* bytes of a file; init keeps the memory in which it came */
	TERMINALS_MAX = 64, /* of one sandbox */
	WARDEN_FD = 3, /* the hub's socket in a new warden */
	/* also in one that outlives its hub: */
	WARDEN_LISTENER_FD = 4, /* bound, not yet listening */
	WARDEN_LOCK_FD = 5, /* the holder of its lock is this folder's warden */
	WARDEN_DIR_FD = 6, /* that folder */
	INIT_FD = 3, /* the control socket in a new init */
	INIT_OOM_FD = 4, /* counters of the sandbox's cgroup; may be closed */
	INIT_PIDS_FD = 5,
	INIT_SCORE_FD = 6, /* its oom_score_adj, since its /proc is read-only */
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
	WM_PAUSED, /* warden: wm_head; the request has taken effect */
	WM_RECORD, /* hub: wm_record, then the record */
	WM_END, /* hub: wm_head; from now on sandboxes end with this hub */
	WM_ADOPT, /* warden, after WM_READY: wm_adopt, then the record; with the init's socket */
	WM_USAGE, /* hub: wm_usage */
	WM_USED, /* warden: wm_used */
	WM_WRITE, /* hub: wm_write; with the descriptor to write to */
	WM_WRITTEN, /* warden: wm_written; everything was written */
	WM_SOCKET, /* hub: wm_socket */
	WM_SOCKET_MADE, /* warden: wm_head; with the sockets */
	WM_SLEEP, /* hub: wm_sleep; end its init */
	WM_ASLEEP, /* warden: wm_head; the init has ended */
	WM_WAKE, /* hub: wm_sleep; start an init if there is none */
	WM_AWAKE, /* warden: wm_head; with the init's socket */
	WM_HURRY, /* hub: wm_sleep; programs are to end, so it gives way to nobody for a moment */
	WM_ATTACH, /* hub: wm_attach */
	WM_ATTACHED, /* warden: wm_head */
	WM_LOOK, /* hub: wm_look; no answer, as what is found is logged */
	WM_GREET = 0x686f6c74, /* warden: wm_greet */
};

struct wm_head {
	uint32_t type;
	uint32_t seq; /* that of the request, also in its answer; 0 if unasked */
};

/* Never changes, since builds that differ exchange it. The warden hangs up unless its state is
 * free. */
enum wm_greet_state { WM_GREET_FREE, WM_GREET_BUSY, WM_GREET_ENDING };

struct wm_greet {
	struct wm_head h;
	uint32_t version;
	uint32_t state; /* enum wm_greet_state */
	char build[WIRE_BUILD_MAX];
};

/* To a warden that outlived its hub, with one descriptor: the hub's standard error. */
struct wm_hello {
	struct wm_head h;
	uint32_t version;
	char build[WIRE_BUILD_MAX];
	uint32_t kept; /* the sandboxes outlive the hub */
	uint32_t root; /* sandboxes with root may be asked for */
	uint64_t linger_ms; /* how long, without another hub */
	uint32_t pool;
	uint32_t networks;
	uint32_t max_sandboxes;
	uint64_t files; /* soft limit of descriptors for the user's other programs */
	struct limits limits; /* for pooled sandboxes, complete */
	char allow[256];
	/* absolute paths of folders and files that no sandbox may get, see warden/closed.h;
	 * "": none */
	char closed[WIRE_CLOSED_MAX][WIRE_PATH_MAX];
};

struct wm_ready {
	struct wm_head h;
	uint32_t driver; /* enum limit_driver */
	uint32_t rootless;
	uint32_t can_freeze; /* else init must stop the processes of a busy source */
	uint32_t adopted; /* number of WM_ADOPT that follow */
	uint32_t epoch; /* for their IM_RESET */
};

struct wm_create {
	struct wm_head h;
	struct limits limits; /* complete */
	char image[4096]; /* the absolute path of an image's folder; "": the template host */
	uint32_t of_host; /* the host's directories are mounted over that image */
	uint32_t n_mounts; /* for each, wm_mount and its two paths with their NULs follow */
};

struct wm_mount {
	uint32_t host_len, guest_len; /* both include the NUL */
	uint32_t writable;
	uint32_t all; /* sandbox_mount.all */
	uint32_t own; /* sandbox_mount.own */
	uint32_t state; /* sandbox_mount.state */
	uint64_t size; /* quota in bytes that the host must enforce; 0: none */
};

/* The answer of the source's init about it. The hub asks nothing of the init until the fork is
 * answered. */
enum wm_fork_how {
	WM_FORK_IDLE, /* nothing runs but init: freeze its layer in place */
	WM_FORK_BUSY, /* something runs: freeze it and copy */
	WM_FORK_STOPPED, /* something runs, and init has stopped it: copy */
};

struct wm_fork {
	struct wm_head h;
	uint64_t key;
	uint32_t n;
	uint32_t how; /* enum wm_fork_how */
};

enum wm_write_what {
	WM_WRITE_TAR, /* an OCI layer, without the end of the archive */
	WM_WRITE_NAMES, /* for each: enum diff, enum file_type, its path from / with a NUL */
};

/* Writes a sandbox's changes against its template. The sandbox is frozen until everything was
 * written, and the hub asks nothing of its init meanwhile. */
struct wm_write {
	struct wm_head h;
	uint64_t key;
	uint32_t how; /* enum wm_fork_how */
	uint32_t what; /* enum wm_write_what */
	/* 1: only what is below /workspace, against the tree that is attached there; without one,
	 * all of it */
	uint32_t workspace;
	uint32_t pad;
};

struct wm_written {
	struct wm_head h;
	uint32_t attached; /* of a workspace: it was compared with the attached tree */
	char image[WIRE_IMAGE_MAX]; /* name of its image's folder; "": it has none */
};

/* Puts a tree of files below the sandbox's writable layer. Nothing may run in the sandbox, and its
 * /workspace must be empty. */
struct wm_attach {
	struct wm_head h;
	uint64_t key;
	uint32_t how; /* enum wm_fork_how */
	uint32_t pad;
	/* absolute path of a folder whose root/ has the one directory workspace/ */
	char folder[WIRE_PATH_MAX];
};

/* Looks for what a sandbox has left in a folder of the host. It ended with its warden. */
struct wm_look {
	struct wm_head h;
	int64_t since_ms; /* Unix time: it could write the folder from then on */
	char folder[WIRE_PATH_MAX];
};

struct wm_destroy {
	struct wm_head h;
	uint64_t key;
};

struct wm_pause {
	struct wm_head h;
	uint64_t key;
	uint32_t paused; /* 0: resume */
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

/* What the next hub must know of a sandbox. A WM_CREATED is confirmed once the records of all its
 * sandboxes are there; until then it is undone if the hub goes away. */
struct wm_record {
	struct wm_head h;
	uint64_t key;
	uint64_t dies_at_ms; /* on the monotonic clock; 0: never */
	uint32_t paused;
	uint32_t idle_ms; /* ended when there was no hub for so long; 0: not */
};

/* The beginning of the record. The working directory, n_env variables and n_argv arguments of the
 * template follow, each with its NUL, then record_n bytes of the hub. The warden only stores it.
 * A later hub of another version may read it, so this form is part of the agreement between
 * versions. */
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

/* The use of sandboxes. n 0: everything of this warden together, including the pool. */
struct wm_usage {
	struct wm_head h;
	uint32_t n, pad;
	uint64_t keys[WIRE_USAGE_MAX];
};

/* A value that can't be measured has no bit. */
enum wm_use_has {
	WM_USE_LIVES = 1 << 0, /* the sandbox exists */
	WM_USE_MEMORY = 1 << 1,
	WM_USE_PEAK = 1 << 2,
	WM_USE_CPU = 1 << 3,
	WM_USE_PIDS = 1 << 4,
	WM_USE_DISK = 1 << 5,
};

struct wm_use {
	uint32_t has, pad; /* has: enum wm_use_has */
	uint64_t memory, memory_peak, cpu_us, pids, disk;
};

/* In the order of the keys; one in all for everything together. */
struct wm_used {
	struct wm_head h;
	uint32_t n, pad;
	struct wm_use of[WIRE_USAGE_MAX];
};

/* A sandbox in which nothing runs, as its init has said, needs no init: its files and limits stay.
 * If the warden fails, the sandbox stays as it was. */
struct wm_sleep {
	struct wm_head h;
	uint64_t key;
};

/* An address of a sandbox's loopback network. */
struct wm_address {
	uint32_t ip; /* in host order */
	uint16_t port;
	uint16_t datagram; /* 1: UDP, 0: TCP */
};

/* Sockets in a sandbox's network. n 0: one of TCP, not yet connected. Else of IPv4, one bound to
 * each address, where those of TCP listen; all or none. */
struct wm_socket {
	struct wm_head h;
	uint64_t key;
	uint32_t family; /* AF_INET or AF_INET6 */
	uint32_t n;
	struct wm_address at[WIRE_SOCKETS_MAX];
};

/* ---- hub <-> init --------------------------------------------------------------------------- */

enum im_type {
	/* during set-up, between the warden and the child that becomes init */
	IM_PARTS = 1, /* warden: im_parts; descriptors: the root, then the counters that exist */
	IM_MAP_ME, /* child: write my uid map, then answer with any message */
	IM_SETUP_FAILED, /* child: im_setup_failed */
	IM_READY, /* init: im_head */
	/* hub to init */
	IM_EXEC, /* im_exec; descriptors: [stdin,] stdout, stderr; or one terminal */
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
	/* im_file_done, for FILE_OP_READ with bytes; one descriptor for FILE_OP_READ and
	 * FILE_OP_WRITE; for trees im_tree_done */
	IM_FILE_DONE,
	IM_PROCESS_DONE, /* im_process_done, and with PROCESS_OP_LIST its entries */
	IM_TERMINAL_DONE, /* im_terminal_done; one descriptor: the directory of terminals */
	IM_WAS_RESET, /* im_quiet; nothing for earlier hubs comes after it */
};

struct im_head {
	uint32_t type;
	uint32_t id; /* the hub's number of the exec or request */
};

/* Descriptors: the root, the counters that exist, the groups to enter. */
struct im_parts {
	struct im_head h;
	uint32_t fill; /* 1: with a directory to be copied into the root */
	uint32_t oom, pids; /* 1: the counter exists */
	uint32_t n_tasks;
};

struct im_setup_failed {
	struct im_head h;
	int32_t errnum;
	char stage[60];
};

#define IM_STAGE_MOUNT "mount on " /* begins the stage of a mount that the operator asked for */
enum { IM_STAGE_GUEST = 40 }; /* bytes of its place that follow */

/* After a working directory, argc words, then envc "NAME=value" strings, each with its NUL. With
 * `shell` argv is one word, the line. */
struct im_exec {
	struct im_head h;
	uint32_t argc, envc;
	uint32_t has_stdin;
	uint32_t shell;
	/* 1: the program leads a session with the terminal as its controlling terminal */
	uint32_t terminal;
	uint32_t files; /* open files of the program; 0: as many as the host gives */
	struct exec_how how; /* EXEC_AS_USER: it becomes uid 1000, in a sandbox with root */
	/* of the last this many variables the value goes into a file, and its name instead into
	 * the variable */
	uint32_t secret_files;
};

enum { IM_SIGNAL_TREE = 1 };

struct im_signal {
	struct im_head h;
	int32_t signal;
	uint32_t flags; /* IM_SIGNAL_TREE: kill it and all that it started */
};

/* The stage at which starting a program failed. */
enum im_exec_stage { IM_STAGE_RAN, IM_STAGE_FORK, IM_STAGE_CWD, IM_STAGE_EXEC };

struct im_exit {
	struct im_head h;
	uint32_t stage; /* enum im_exec_stage; unless RAN, errnum is the reason and the rest is 0 */
	int32_t errnum;
	int32_t status; /* from wait4 */
	uint32_t oom_kills, pids_hits; /* those of the sandbox while it ran */
	uint32_t disk_full; /* 1: there was no room for files when it ended */
	uint64_t cpu_us, peak_bytes;
};

struct im_reset {
	struct im_head h;
	/* 1: what IM_STOP has stopped stays stopped, since the sandbox is paused */
	uint32_t stay_stopped;
	uint32_t pad;
};

struct im_quiet {
	struct im_head h;
	uint32_t processes; /* other than init; in answer to IM_STOP: those that would not stop */
	/* System V IPC objects, which outlive processes; in answer to IM_QUIESCE */
	uint32_t objects;
	uint32_t pad;
};

enum file_op {
	/* path, offset, want; answered with the bytes, if they are at most WIRE_PIECE_MAX and no
	 * disk or network has to be waited for, and with a descriptor of the regular file, unless
	 * they are from the sandbox's own root; else with the descriptor alone */
	FILE_OP_READ,
	/* path, mode, then the first piece of its bytes; answered with a token, unless that piece
	 * was everything. In a folder of the host, which may be slow, answered with a descriptor of
	 * an empty new file beside it; the piece is not used. If the folder is in memory and the
	 * piece is everything, it is written as in the sandbox. */
	FILE_OP_WRITE,
	FILE_OP_APPEND, /* token, then another piece */
	FILE_OP_COMMIT, /* token: the new file replaces path */
	FILE_OP_ABORT, /* token */
	FILE_OP_STAT,
	FILE_OP_LIST,
	FILE_OP_MKDIR,
	FILE_OP_REMOVE,
	FILE_OP_MOVE, /* two paths */
	/* Each of these runs in a process of its own, which answers with im_tree_done. A descriptor
	 * is sent with the message: */
	FILE_OP_ARCHIVE, /* path, then names to leave out; the archive is written to it */
	FILE_OP_UPLOAD, /* path of a directory; the archive is read from it */
	FILE_OP_WATCH, /* path of a directory; one im_change after another is written to it */
	/* token: the id of one of those, which is killed and then answered. Has no answer itself */
	FILE_OP_STOP,
};

enum {
	FILE_FLAG_PARENTS = 1,
	FILE_FLAG_RECURSIVE = 2,
	FILE_FLAG_CHANGES = 4,
	FILE_FLAG_LAST = 8, /* piece */
	FILE_FLAG_PASS_MOUNTS = 16,
	/* A write keeps the owner, too, and FILE_OP_COMMIT is answered with the directory. */
	FILE_FLAG_DURABLE = 32,
	/* An upload of changes is exact (struct tar_unpack_opts), an archive leaves nothing out. */
	FILE_FLAG_EXACT = 64,
	FILE_FLAG_NAMED = 128, /* an archive of a directory, too, has its name */
};

/* One or two absolute paths with their NULs follow. */
struct im_file {
	struct im_head h;
	uint32_t op, flags, mode, token;
	uint64_t offset;
	uint32_t want, pad;
};

struct im_stat {
	uint32_t type; /* enum file_type */
	uint32_t mode;
	uint64_t size;
	int64_t mtime_ms;
};

struct im_file_done {
	struct im_head h;
	int32_t errnum; /* 0: success */
	/* with errnum: the path exists, but is not a file that may be used like this */
	uint32_t not_a_file;
	uint32_t token;
	/* FILE_OP_LIST: number of im_entry that follow, each with its name */
	uint32_t entries, truncated;
	uint32_t has_bytes; /* FILE_OP_READ: what follows is what was read */
	struct im_stat st;
	uint64_t dev, ino; /* FILE_OP_READ */
};

struct im_tree_done {
	struct im_file_done d; /* errnum: it could not be started */
	struct tree_failure failure; /* else how it ended */
};

/* A change below a watched directory. */
struct im_change {
	uint32_t kind; /* enum change_kind */
	uint32_t cookie;
	uint32_t is_directory;
	/* without NUL; the path below the directory follows, without NUL and padding */
	uint32_t path_len;
};

struct im_entry {
	struct im_stat st;
	uint32_t name_len; /* without NUL; the name follows, without NUL and padding */
	uint32_t pad;
};

enum process_op {
	PROCESS_OP_LIST,
	PROCESS_OP_SIGNAL, /* pid, signal */
	PROCESS_OP_SIGNAL_EXEC, /* the id of an exec as pid, signal */
};

struct im_process {
	struct im_head h;
	uint32_t op;
	int32_t pid, signal;
	uint32_t pad;
};

struct im_process_done {
	struct im_head h;
	int32_t errnum; /* 0: success */
	/* number of im_process_entry that follow, each with its command */
	uint32_t entries, truncated;
	uint32_t pad;
};

struct im_terminal_done {
	struct im_head h;
	int32_t errnum; /* 0: success */
	uint32_t pad;
};

struct im_process_entry {
	uint32_t pid, parent;
	uint32_t state; /* the letter of proc(5) */
	uint32_t command_len; /* the command follows, without NUL and padding */
	uint64_t cpu_ms, bytes, age_ms;
};
