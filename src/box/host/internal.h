#pragma once
/* Shared by the files of the engine's host side: box.c (requests to the warden), send.c (their
 * transport), warden.c (its process), keep.c (finding a living one), sandbox.c (one sandbox and its
 * init), record.c (what a later process must know of it), sleep.c (living without an init),
 * init_call.c (requests to its init), exec.c, file.c, transfer.c, process.c, usage.c, dial.c. The
 * contract is in box.h. */
#include <stdbool.h>
#include <uv.h>

#include "base/buf.h"
#include "base/id.h"
#include "box/host/box.h"
#include "box/wire/wire.h"

/* An error with the sandbox's own files: the full disk is the sandbox's, not the host's. */
static inline void own_disk(struct err *e)
{
	if (e->code == ERR_STORE_FULL)
		e->code = ERR_DISK_FULL;
}

/* An unanswered request to the warden; seq identifies it. */
struct pending {
	struct pending *next;
	uint32_t seq;
	struct box *box; /* of a request for usage */
	/* the source of a fork, or the sandbox to pause or resume; a reference */
	struct sandbox *source;
	bool pause; /* to pause it; else to resume it */
	uv_timer_t *timer; /* runs until the source's init has answered */
	int to; /* the descriptor to which changes are written; -1: the request is none for that */
	enum wm_write_what what;
	bool workspace; /* only those of the workspace are */
	char *folder; /* owned; to attach it. NULL: the request is none for that */
	/* a fork of a source that had work in progress: no layer can be frozen in place */
	bool copies;
	/* not live yet; the created or forked sandboxes are filled from it */
	struct sandbox *model;
	uint32_t n;
	char (*ids)[SANDBOX_ID_MAX + 1]; /* ids for a fork's n children; NULL: made here */
	/* references: the children of a fork, once made; or the sandboxes of a request for usage */
	struct sandbox *children[WIRE_FORK_MAX];
	/* the last of its messages that must be sent before it is answered; NULL: none */
	struct unsent *last;
	sandbox_cb on_sandbox; /* for create and destroy */
	fork_cb on_fork;
	usage_cb on_usage;
	sockets_cb on_sockets;
	void *arg;
};

enum box_state {
	BOX_STARTING, /* the warden has not answered yet */
	BOX_READY,
	BOX_DEAD, /* no warden: the next create starts one */
	BOX_CLOSING,
};

struct box {
	uv_loop_t *loop;
	enum box_state state;
	bool can_freeze;
	struct box_config config;
	char libexec[512], allow[256];
	char *warden_dir; /* owned; NULL: sandboxes end with this process */
	char closed[WIRE_CLOSED_MAX][WIRE_PATH_MAX]; /* "": none */
	uv_process_t *process; /* NULL: the warden was found alive, or there is none */
	int pidfd; /* of a warden that was found alive, else -1 */
	uv_poll_t *exit_poll; /* polls pidfd */
	uv_timer_t *adopt_timer; /* runs until all inits of adopted sandboxes have answered */
	/* runs until the next sandbox may sleep; NULL: none was idle yet */
	uv_timer_t *sleep_timer;
	uv_poll_t *poll;
	int socket; /* to the warden */
	/* messages that wait for room in the socket, unsent_bytes in all */
	struct unsent *unsent, *last_unsent;
	size_t unsent_bytes;
	uint32_t last_seq;
	struct pending *pending;
	struct sandbox *sandboxes; /* the live ones */
	struct box_stats stats;
	struct err start_error; /* why there is no warden */
	uint64_t started_ms;
	uv_timer_t *close_timer; /* allocated at the start, so that closing can't fail */
	void (*on_closed)(void *arg);
	void *on_closed_arg;
	char message[WIRE_MAX];
};

/* One request to an init. The caller sets sb and the members after it. */
struct init_call {
	struct init_call *next;
	uint32_t id;
	struct sandbox *sb;
	enum im_type answer; /* the expected type of the answer, and its smallest size */
	size_t answer_size;
	/* the answer came with a descriptor, but this process could not take one more */
	bool fd_lost;
	/* err: the sandbox ended; else the answer, n bytes with what follows it. Takes fd. */
	void (*on_reply)(struct init_call *c, const void *answer, size_t n, int fd,
			 const struct err *err);
};

/* Changed only in sleep.c, except for an adopted sandbox. */
enum sandbox_sleep {
	SANDBOX_AWAKE,
	SANDBOX_FALLING_ASLEEP, /* its init is being ended */
	SANDBOX_ASLEEP, /* it has no init */
	SANDBOX_WAKING,
};

struct sandbox {
	struct sandbox *next;
	struct box *box;
	uint32_t refs;
	bool live;
	bool from_pool;
	bool destroying;
	bool announced; /* its creator was told of it */
	char id[SANDBOX_ID_MAX + 1];
	char template[256];
	/* the folder of the template's image, until the sandbox is made; NULL: the template is the
	 * host */
	char *image;
	bool of_host; /* likewise: the host's directories are mounted over that image */
	uint64_t key;
	struct limits limits;
	uint64_t ttl_ms;
	uint64_t dies_at_ms; /* 0: never */
	uint32_t idle_ms; /* ended when there was no hub for so long; 0: not */
	char *cwd;
	char **env; /* "NAME=value", n_env of them; later ones override earlier ones */
	size_t n_env;
	char **argv; /* those of the template, n_argv of them */
	size_t n_argv;
	int socket; /* to its init; -1: it is asleep */
	uv_poll_t *poll; /* polls socket */
	enum sandbox_sleep sleep;
	/* AWAKE: the request whether it may sleep; else the request to the warden; 0: none */
	uint32_t sleep_seq;
	uint64_t asked_ms; /* when that request was sent */
	bool sleepless; /* the warden can't let it sleep */
	uv_timer_t *ttl_timer;
	uint32_t last_id;
	struct exec *execs;
	struct init_call *calls;
	uint32_t n_files; /* operations on files in progress, some of which hold descriptors */
	struct pending *forking; /* a fork in progress, or the writing of its changes */
	/* the name of its image's folder, as the warden last reported it */
	char base[WIRE_IMAGE_MAX];
	bool attached; /* as the last request for the changes of its workspace has told */
	struct pending *pausing; /* likewise a pause or resume */
	bool paused;
	/* when its init last spoke, or could speak again after a fork or sleep */
	uint64_t heard_ms;
	/* messages that wait until init can be spoken to, then for room in its socket */
	struct queued *queue;
	uint32_t n_queued;
	bool stopped; /* its processes wait for IM_CONTINUE */
	unsigned asked_quiet; /* so many IM_QUIET are awaited */
	bool adopted;
	uint32_t epoch; /* of the IM_RESET that its init has not answered yet; 0: none */
	bool unreset; /* IM_RESET could not be sent yet: messages wait in the queue */
	char *record; /* the caller's record, record_n bytes */
	size_t record_n;
	uint64_t n_execs, bytes_in, bytes_out; /* totals so far */
	uint64_t out_left; /* of bytes_out until on_out is called */
	void (*on_out)(void *arg); /* NULL: never */
	void *on_out_arg;
};

/* ---- sandbox.c ------------------------------------------------------------------------------ */

struct sandbox *sandbox_new(struct box *box, const struct sandbox_spec *spec,
			    struct err *e) MUST_USE;
/* ERR_INVALID unless there are at most 256 variables with valid names. */
int env_check(const struct env_var *env, size_t n, struct err *e) MUST_USE;
/* A copy of what a fork inherits, not live yet; id NULL: a new one. */
struct sandbox *sandbox_copy(const struct sandbox *from, const char *id, struct err *e) MUST_USE;
/* A fork of it has ended, or it was resumed: sends the held messages. */
void sandbox_released(struct sandbox *sb);
/* Makes its init stop its processes (it answers with IM_QUIET), or let them continue. */
int sandbox_stop(struct sandbox *sb, uint32_t id, struct err *e) MUST_USE;
int sandbox_continue(struct sandbox *sb, struct err *e) MUST_USE;
/* Makes its init answer with IM_QUIET. */
int sandbox_ask_quiet(struct sandbox *sb, uint32_t id, struct err *e) MUST_USE;
/* An empty sandbox with a new id; NULL: no memory. */
struct sandbox *sandbox_alloc(struct box *box);
/* Takes the socket and puts the sandbox on the list of live ones. dies_at_ms: 0: never. */
int sandbox_go_live(struct sandbox *sb, uint64_t key, int socket, uint64_t dies_at_ms,
		    struct err *e) MUST_USE;
/* Tells the init of an adopted sandbox that another hub begins. */
void sandbox_reset(struct sandbox *sb, uint32_t epoch);
/* Reads what an init says: sandbox_listen() from a new socket, which it takes, with sb->poll
 * allocated; sandbox_listen_on() from the same one again. */
void sandbox_listen(struct sandbox *sb, int socket);
void sandbox_listen_on(struct sandbox *sb);
/* Ends everything that waits or is in progress in it with err. */
void sandbox_fail(struct sandbox *sb, const struct err *err);
/* The same, and takes it off the list of live ones. */
void sandbox_end(struct sandbox *sb, const struct err *err);
/* True if its init can't answer now. */
static inline bool sandbox_stands(const struct sandbox *sb)
{
	return sb->forking || sb->pausing || sb->paused || sb->unreset || sb->sleep;
}
/* True if messages must wait, because of that or behind earlier ones. */
static inline bool sandbox_held(const struct sandbox *sb)
{
	return sandbox_stands(sb) || sb->queue;
}
/* Sends one message with descriptors to its init. A full socket or a dead init is an error. */
int sandbox_send(struct sandbox *sb, const void *msg, size_t n, const int *fds, size_t n_fds,
		 struct err *e) MUST_USE;
/* Makes path absolute by the sandbox's working directory, at `at` (room: PATH_MAX), NUL-terminated.
 * Returns its length with the NUL. */
int sandbox_path(const struct sandbox *sb, struct str path, char *at, struct err *e) MUST_USE;

/* ---- record.c ----------------------------------------------------------------------- */

/* Stores a copy of the caller's record; ERR_TOO_LARGE. */
int record_set(struct sandbox *sb, struct str record, struct err *e) MUST_USE;
/* Makes the warden store the sandbox's record. The first time, this also confirms the sandbox. */
int record_send(struct sandbox *sb, struct err *e) MUST_USE;
/* Makes a sandbox, not live yet, from a record that the warden stored. */
struct sandbox *record_read(struct box *box, const char *p, size_t n, struct err *e) MUST_USE;

/* ---- sleep.c ------------------------------------------------------------------------- */

/* A sandbox may have become idle, or stopped delaying the sleep of others. */
void box_watch_sleep(struct box *box);
/* An operation on files has ended, maybe after the sandbox and the box. */
static inline void sandbox_file_ended(struct sandbox *sb)
{
	sb->n_files--;
	if (sb->live)
		box_watch_sleep(sb->box);
}
/* The answer to the request with that sleep_seq. */
void sandbox_is_quiet(struct sandbox *sb, const struct im_quiet *m);
/* Wakes a sandbox, now or once it has fallen asleep. */
int sandbox_wake(struct sandbox *sb, struct err *e) MUST_USE;
/* The warden's answers to WM_SLEEP and WM_WAKE. box_awake() sets *fd to -1 if it takes it. */
void box_asleep(struct box *box, uint32_t seq);
void box_awake(struct box *box, uint32_t seq, int *fd);
void box_sleep_failed(struct box *box, uint32_t seq, const struct err *err);

/* ---- box.c ---------------------------------------------------------------------------------- */

/* Starts a request (a fork, a write of changes, a pause) whose source is awake now. */
void box_source_awake(struct pending *p);

/* Sends the WM_FORK of a pending fork, once it is known whether its source is idle. */
void box_fork_known(struct box *box, struct pending *p, enum wm_fork_how how);
void box_fork_failed(struct box *box, struct pending *p, const struct err *err);
/* Makes the warden end the sandbox with this key; nobody waits for it. */
void box_discard(struct box *box, uint64_t key);
/* Handles the warden's message in box->message; the caller closes fds afterwards. */
void box_heard(struct box *box, int *fds);
/* The warden's process has ended, and its last messages were handled. */
void box_ended(struct box *box, int status, int signal);
/* Answers sandbox_pause_start() or sandbox_resume_start(). */
void box_paused(struct box *box, struct pending *p);
/* Answers p, since what box_wait_sent() waited for was sent. */
void box_confirmed(struct box *box, struct pending *p);
/* Ends a sandbox everywhere, since its init has ended or violated the protocol. */
void box_lose(struct sandbox *sb);

/* Puts a request to the warden on the list of those that wait for an answer; NULL: no memory. */
struct pending *box_expect(struct box *box, void *arg);
/* Takes the request with that seq off the list; NULL: there is none. */
struct pending *box_expected(struct box *box, uint32_t seq);
void box_forget(struct pending *p); /* frees p, which is not on the list */

/* ---- usage.c -------------------------------------------------------------------------------- */

/* Handles the answer to a request that was taken off the list. */
void usage_said(struct pending *p, const struct wm_used *m);
void usage_out(struct sandbox *sb, uint64_t bytes);
/* Counts bytes that went in and out. */
static inline void sandbox_count(struct sandbox *sb, uint64_t in, uint64_t out)
{
	sb->bytes_in += in;
	sb->bytes_out += out;
	sb->box->stats.bytes_in += in;
	sb->box->stats.bytes_out += out;
	if (sb->on_out)
		usage_out(sb, out);
}

/* ---- send.c ------------------------------------------------------------------------------ */

/* Sends a message to the warden, after all earlier ones. */
int box_send(struct box *box, const void *msg, size_t n, struct err *e) MUST_USE;
/* The same with a descriptor, which is borrowed. */
int box_send_fd(struct box *box, const void *msg, size_t n, int fd, struct err *e) MUST_USE;
/* Makes box_confirmed() answer p, which is on the list, when all queued messages were sent. False:
 * they were already, or p has none among them. */
bool box_wait_sent(struct box *box, struct pending *p);
void box_wait_no_more(struct pending *p);
/* Sends queued messages, since there may be room. */
void box_send_more(struct box *box);
/* Drops queued messages; the requests that wait for them stay on the list. */
void box_send_no_more(struct box *box);

/* ---- warden.c --------------------------------------------------------------------------- */

/* Finds the warden's program. */
int box_warden_find(struct box *box, struct err *e) MUST_USE;
/* Starts the warden and greets it, or finds one that is alive; requests may be sent at once. */
int box_warden_start(struct box *box, struct err *e) MUST_USE;
/* Starts the warden. kept: its WARDEN_LISTENER_FD and the descriptors after it, or NULL. */
int box_warden_spawn(struct box *box, const int *kept, struct err *e) MUST_USE;
/* Sends WM_HELLO, with the descriptor log if that is not negative. */
int box_warden_hello(struct box *box, int log, struct err *e) MUST_USE;
/* Reads from the warden's socket and, if the socket alone would not tell, waits for the end of
 * box->pidfd. */
int box_warden_watch(struct box *box, struct err *e) MUST_USE;
/* Also waits for room in the socket while messages are queued. */
void box_warden_listen(struct box *box);
/* Closes the socket to the warden. */
void box_warden_drop(struct box *box);
/* Forgets the warden's process. */
void box_warden_forget(struct box *box);
void box_warden_kill(struct box *box);

/* ---- keep.c ----------------------------------------------------------------------------- */

/* Finds the warden of box->warden_dir and adopts its sandboxes, or starts one. */
int box_keep_start(struct box *box, struct err *e) MUST_USE;
/* The sandbox was paused or resumed. A later process must know, and the init of an adopted one may
 * answer now. */
void box_keep_pause(struct sandbox *sb);

/* ---- init_call.c ---------------------------------------------------------------------------- */

/* Sends the n bytes that begin with h, with an id of their own; on_reply follows. */
int init_call_send(struct init_call *c, struct im_head *h, size_t n, struct err *e) MUST_USE;
/* The same with a descriptor, which stays the caller's. */
int init_call_send_fd(struct init_call *c, struct im_head *h, size_t n, int fd,
		      struct err *e) MUST_USE;
/* Handles an answer. One of an unexpected type violates the protocol. Sets *fd to -1 if it takes
 * it. */
void init_call_answered(struct sandbox *sb, const struct im_head *answer, size_t n, int *fd,
			bool fd_lost);
/* The error for an answer that lacks its descriptor. */
int init_call_no_fd(const struct init_call *c, struct err *e);
void init_call_end_all(struct sandbox *sb, const struct err *err);

/* ---- process.c ------------------------------------------------------------------------------ */

/* exec_signal_start(), by the exec's id. */
void process_signal_exec(struct sandbox *sb, uint32_t exec, int signal, process_cb on_done,
			 void *arg);

/* ---- exec.c --------------------------------------------------------------------------------- */

void exec_exited(struct sandbox *sb, const struct im_exit *m);
void exec_end_all(struct sandbox *sb, const struct err *err);
void exec_hold_timeouts(struct sandbox *sb, bool hold);
uint64_t exec_count(const struct sandbox *sb); /* running ones */

/* Calls f in the loop's next turn, so that no callback comes from inside the call that caused
 * it. */
int box_later(struct box *box, void (*f)(void *arg), void *arg, struct err *e) MUST_USE;

/* Closes a heap-allocated handle and frees it when libuv is done with it. NULL-safe. */
void box_close_handle(void *handle);

/*
 * Terminals in sandboxes. The hub opens both ends itself, in a directory of the kernel's devpts
 * that the sandbox's init passes to it. A master opened by init would be shared with it, and
 * whoever shares a master can make its reader block.
 */

struct terminal_call;

/* master is non-blocking; the callback takes both. err: failure, and both are -1. */
typedef void terminal_cb(void *arg, int master, int slave, const struct err *err);

/* on_done is called later, once, unless it is cancelled. */
struct terminal_call *terminal_open_start(struct sandbox *sb, const struct exec_terminal *t,
					  terminal_cb *on_done, void *arg, struct err *e) MUST_USE;
void terminal_open_cancel(struct terminal_call *c); /* NULL-safe */

/* ERR_INVALID for an invalid size. */
int terminal_check(unsigned columns, unsigned rows, struct err *e) MUST_USE;

/* Sets the new size; the programs on it get SIGWINCH. */
int terminal_resize(int master, unsigned columns, unsigned rows, struct err *e) MUST_USE;

/* The same for a terminal that is still being opened. */
void terminal_open_resize(struct terminal_call *c, unsigned columns, unsigned rows);

/* The character that ends input in line mode; 0: none, since input is read byte by byte. master -1:
 * that of a new terminal. */
char terminal_end_of_file(int master);
