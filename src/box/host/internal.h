#pragma once
/* What the hub's side of the engine shares: box.c (requests to the warden), send.c (how they get
 * there), warden.c (its process), keep.c (finding one that lives), sandbox.c (one sandbox and its
 * init), record.c (what a later process has to know of it), sleep.c (being without an init),
 * init_call.c (questions to its init), exec.c, file.c, transfer.c, process.c, usage.c, dial.c. The
 * contract is in box.h. */
#include <stdbool.h>
#include <uv.h>

#include "base/buf.h"
#include "base/id.h"
#include "box/host/box.h"
#include "box/wire/wire.h"

/* An unanswered request to a warden: the seq is its key. */
struct pending {
	struct pending *next;
	uint32_t seq;
	struct box *box; /* of a question about usage */
	struct sandbox *source; /* of a fork, or what is paused; a reference */
	bool pause; /* or resume */
	uv_timer_t *timer; /* until the source's init has answered */
	int to; /* what it has changed is written there; -1: it is not for that */
	enum wm_write_what what;
	/* a fork whose source had something under way: no layer can be frozen in place */
	bool copies;
	struct sandbox *model; /* not yet live: what a created or forked sandbox is filled from */
	uint32_t n;
	char (*ids)[SANDBOX_ID_MAX + 1]; /* of a fork's n children; NULL: made */
	/* references: the children of a fork, once made; or the sandboxes of a usage request */
	struct sandbox *children[WIRE_FORK_MAX];
	struct unsent *last; /* of its messages, which is waited for; NULL: none */
	sandbox_cb on_sandbox; /* create, destroy */
	fork_cb on_fork;
	usage_cb on_usage;
	void (*on_socket)(void *arg, int fd, const struct err *err); /* takes fd over */
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
	char *warden_dir; /* owned; NULL: all ends with this process */
	char closed[WIRE_CLOSED_MAX][WIRE_PATH_MAX]; /* "": none */
	uv_process_t *process; /* NULL: it was found alive, or there is none */
	int pidfd; /* of one that was found, else -1 */
	uv_poll_t *exit_poll; /* of that */
	uv_timer_t *adopt_timer; /* until all inits of adopted sandboxes have answered */
	uv_timer_t *sleep_timer; /* until the next sandbox may sleep; NULL: none was idle yet */
	uv_poll_t *poll;
	int socket; /* to the warden */
	struct unsent *unsent, *last_unsent; /* what waits for room in it, unsent_bytes in all */
	size_t unsent_bytes;
	uint32_t last_seq;
	struct pending *pending;
	struct sandbox *sandboxes; /* live ones */
	struct box_stats stats;
	struct err start_error; /* why there is no warden */
	uint64_t started_ms;
	uv_timer_t *close_timer; /* allocated at the start, so that the end can't fail */
	void (*on_closed)(void *arg);
	void *on_closed_arg;
	char message[WIRE_MAX];
};

/* One question to an init: who asks sets sb and what follows it. */
struct init_call {
	struct init_call *next;
	uint32_t id;
	struct sandbox *sb;
	enum im_type answer; /* what it must be, of so many bytes at least */
	size_t answer_size;
	/* a descriptor came with the answer, for which this process had no room */
	bool fd_lost;
	/* err: the sandbox ended; else the answer and what follows it, n bytes in all; fd taken
	 * over */
	void (*on_reply)(struct init_call *c, const void *answer, size_t n, int fd,
			 const struct err *err);
};

/* Changed in sleep.c only, but for one that is adopted. */
enum sandbox_sleep {
	SANDBOX_AWAKE,
	SANDBOX_FALLING_ASLEEP, /* its init is being ended */
	SANDBOX_ASLEEP, /* it has none */
	SANDBOX_WAKING,
};

struct sandbox {
	struct sandbox *next;
	struct box *box;
	uint32_t refs;
	bool live;
	bool from_pool;
	bool destroying;
	bool announced; /* its maker has been told of it */
	char id[SANDBOX_ID_MAX + 1];
	char template[256];
	/* the folder of the template's image, until the sandbox is made; NULL: of the host */
	char *image;
	bool of_host; /* likewise: the host's directories stand over that image */
	uint64_t key;
	struct limits limits;
	uint64_t ttl_ms;
	uint64_t dies_at_ms; /* 0: never */
	char *cwd;
	char **env; /* "NAME=value", n_env of them, later ones over earlier ones */
	size_t n_env;
	char **argv; /* the template's, n_argv of them */
	size_t n_argv;
	int socket; /* to its init; -1: it is asleep */
	uv_poll_t *poll; /* of that */
	enum sandbox_sleep sleep;
	/* AWAKE: of the question whether it may sleep; else of what the warden was asked for; 0:
	 * none */
	uint32_t sleep_seq;
	uint64_t asked_ms; /* that question */
	bool sleepless; /* the warden can't let it sleep */
	uv_timer_t *ttl_timer;
	uint32_t last_id;
	struct exec *execs;
	struct init_call *calls;
	uint32_t n_files; /* operations on files under way, some of which hold descriptors */
	struct pending *
		forking; /* a fork of it that is under way; or the writing of what it has changed */
	char base[WIRE_IMAGE_MAX]; /* what the warden said last of its image */
	struct pending *pausing; /* likewise; or resuming */
	bool paused;
	uint64_t heard_ms; /* when its init last spoke, or could again after a fork or sleep */
	struct queued *queue; /* messages to init that wait for that, then for room in its socket */
	uint32_t n_queued;
	bool stopped; /* its processes wait for IM_CONTINUE */
	bool adopted;
	uint32_t epoch; /* of the IM_RESET that its init has not yet answered; 0: none */
	bool unreset; /* nor could it be sent yet: messages wait in the queue */
	char *record; /* the caller's, record_n bytes */
	size_t record_n;
	uint64_t n_execs, bytes_in, bytes_out; /* so far */
};

/* ---- sandbox.c ------------------------------------------------------------------------------ */

struct sandbox *sandbox_new(struct box *box, const struct sandbox_spec *spec,
			    struct err *e) MUST_USE;
/* At most 256 variables with sensible names; ERR_INVALID. */
int env_check(const struct env_var *env, size_t n, struct err *e) MUST_USE;
/* A not yet live copy of what a fork inherits; id: NULL for one that is made. */
struct sandbox *sandbox_copy(const struct sandbox *from, const char *id, struct err *e) MUST_USE;
/* A fork of it has ended, or it has been resumed: what was held back is sent. */
void sandbox_released(struct sandbox *sb);
/* Stops its processes by its init, which answers with IM_QUIET, or lets them go on. */
int sandbox_stop(struct sandbox *sb, uint32_t id, struct err *e) MUST_USE;
int sandbox_continue(struct sandbox *sb, struct err *e) MUST_USE;
/* Has its init answer with IM_QUIET. */
int sandbox_ask_quiet(struct sandbox *sb, uint32_t id, struct err *e) MUST_USE;
/* An empty one of a new id; NULL: no memory. */
struct sandbox *sandbox_alloc(struct box *box);
/* Takes the socket over and puts the sandbox among the live ones. dies_at_ms: 0: never. */
int sandbox_go_live(struct sandbox *sb, uint64_t key, int socket, uint64_t dies_at_ms,
		    struct err *e) MUST_USE;
/* Tells the init of an adopted one that another hub begins. */
void sandbox_reset(struct sandbox *sb, uint32_t epoch);
/* Hears what an init says: of the socket, which is taken over, with sb->poll allocated; or again of
 * the same. */
void sandbox_listen(struct sandbox *sb, int socket);
void sandbox_listen_on(struct sandbox *sb);
/* Ends all that waits or is under way in it with err. */
void sandbox_fail(struct sandbox *sb, const struct err *err);
/* The same, and takes it from the live ones. */
void sandbox_end(struct sandbox *sb, const struct err *err);
/* Its init can't answer for now. */
static inline bool sandbox_stands(const struct sandbox *sb)
{
	return sb->forking || sb->pausing || sb->paused || sb->unreset || sb->sleep;
}
/* What is sent waits, also for what has waited before. */
static inline bool sandbox_held(const struct sandbox *sb)
{
	return sandbox_stands(sb) || sb->queue;
}
/* Sends one message with descriptors to its init; a full socket or a dead init is an error. */
int sandbox_send(struct sandbox *sb, const void *msg, size_t n, const int *fds, size_t n_fds,
		 struct err *e) MUST_USE;
/* path made absolute by the sandbox's working directory, NUL-terminated, at `at` (room: PATH_MAX);
 * returns its length with the NUL. */
int sandbox_path(const struct sandbox *sb, struct str path, char *at, struct err *e) MUST_USE;

/* ---- record.c ----------------------------------------------------------------------- */

/* A copy of the caller's record; ERR_TOO_LARGE. */
int record_set(struct sandbox *sb, struct str record, struct err *e) MUST_USE;
/* Has the warden keep what is to be known of it; the first time that is its confirmation. */
int record_send(struct sandbox *sb, struct err *e) MUST_USE;
/* The sandbox of a record that the warden kept, not yet live. */
struct sandbox *record_read(struct box *box, const char *p, size_t n, struct err *e) MUST_USE;

/* ---- sleep.c ------------------------------------------------------------------------- */

/* A sandbox may have become idle, or no longer be in the way of others that are. */
void box_watch_sleep(struct box *box);
/* An operation on files has ended, which may be later than the sandbox, and the box. */
static inline void sandbox_file_ended(struct sandbox *sb)
{
	sb->n_files--;
	if (sb->live)
		box_watch_sleep(sb->box);
}
/* The answer to the question of that sleep_seq. */
void sandbox_is_quiet(struct sandbox *sb, const struct im_quiet *m);
/* Has one that sleeps wake, now or when it has fallen asleep. */
int sandbox_wake(struct sandbox *sb, struct err *e) MUST_USE;
/* What the warden says to WM_SLEEP and WM_WAKE. fd is taken where it is wanted. */
void box_asleep(struct box *box, uint32_t seq);
void box_awake(struct box *box, uint32_t seq, int *fd);
void box_sleep_failed(struct box *box, uint32_t seq, const struct err *err);

/* ---- box.c ---------------------------------------------------------------------------------- */

/* The source of a fork, of writing what was changed, or of a pause is awake: that begins. */
void box_source_awake(struct pending *p);

/* Sends the WM_FORK of a pending fork, once it is known whether its source is idle. */
void box_fork_known(struct box *box, struct pending *p, enum wm_fork_how how);
void box_fork_failed(struct box *box, struct pending *p, const struct err *err);
/* Ends what the warden knows by this key; nobody waits for it. */
void box_discard(struct box *box, uint64_t key);
/* The warden has said something, which is in box->message; fds are closed afterwards. */
void box_heard(struct box *box, int *fds);
/* The warden's process has ended, and what it said last is heard. */
void box_ended(struct box *box, int status, int signal);
/* What was asked for by sandbox_pause_start() or sandbox_resume_start() is so. */
void box_paused(struct box *box, struct pending *p);
/* What p has waited for by box_wait_sent() is sent: answers it. */
void box_confirmed(struct box *box, struct pending *p);
/* Its init has ended, or has said what no init of ours would say: ends it everywhere. */
void box_lose(struct sandbox *sb);

/* A request to the warden that waits for its answer, on the list; NULL: no memory. */
struct pending *box_expect(struct box *box, void *arg);
/* Takes the one of that number off the list; NULL: there is none. */
struct pending *box_expected(struct box *box, uint32_t seq);
void box_forget(struct pending *p); /* which is not on the list */

/* ---- usage.c -------------------------------------------------------------------------------- */

/* The answer to a request that was taken off the list. */
void usage_said(struct pending *p, const struct wm_used *m);
/* What went in and out of it. */
static inline void sandbox_count(struct sandbox *sb, uint64_t in, uint64_t out)
{
	sb->bytes_in += in;
	sb->bytes_out += out;
	sb->box->stats.bytes_in += in;
	sb->box->stats.bytes_out += out;
}

/* ---- send.c ------------------------------------------------------------------------------ */

/* Has one message sent to the warden, behind all before it. */
int box_send(struct box *box, const void *msg, size_t n, struct err *e) MUST_USE;
/* The same with a descriptor, which is borrowed. */
int box_send_fd(struct box *box, const void *msg, size_t n, int fd, struct err *e) MUST_USE;
/* Has p, which is on the list, answered by box_confirmed() when all of that is sent. False: it is,
 * or the last of it is not p's. */
bool box_wait_sent(struct box *box, struct pending *p);
void box_wait_no_more(struct pending *p);
/* There may be room again. */
void box_send_more(struct box *box);
/* Lets go of what waits; who waits for it is left on the list. */
void box_send_no_more(struct box *box);

/* ---- warden.c --------------------------------------------------------------------------- */

/* Finds its program. */
int box_warden_find(struct box *box, struct err *e) MUST_USE;
/* Starts it and greets it, or finds one that lives; requests may be sent at once. */
int box_warden_start(struct box *box, struct err *e) MUST_USE;
/* Starts one; kept: its WARDEN_LISTENER_FD and those after that, or NULL. */
int box_warden_spawn(struct box *box, const int *kept, struct err *e) MUST_USE;
/* Says WM_HELLO, with a descriptor when log >= 0. */
int box_warden_hello(struct box *box, int log, struct err *e) MUST_USE;
/* Listens to its socket and, where that tells nothing else, for the end of box->pidfd. */
int box_warden_watch(struct box *box, struct err *e) MUST_USE;
/* Hears also of room in its socket while something waits for that. */
void box_warden_listen(struct box *box);
/* Closes the socket to it. */
void box_warden_drop(struct box *box);
/* Lets go of its process. */
void box_warden_forget(struct box *box);
void box_warden_kill(struct box *box);

/* ---- keep.c ----------------------------------------------------------------------------- */

/* Finds the warden of box->warden_dir and adopts its sandboxes, or starts one. */
int box_keep_start(struct box *box, struct err *e) MUST_USE;
/* It was paused or resumed: a later process has to know, and the init of an adopted one may answer
 * now. */
void box_keep_pause(struct sandbox *sb);

/* ---- init_call.c ---------------------------------------------------------------------------- */

/* Sends what begins with h, n bytes, under a number of its own; on_reply follows. */
int init_call_send(struct init_call *c, struct im_head *h, size_t n, struct err *e) MUST_USE;
/* With a descriptor, which stays the caller's. */
int init_call_send_fd(struct init_call *c, struct im_head *h, size_t n, int fd,
		      struct err *e) MUST_USE;
/* Another answer than is asked for is what no init of ours says. *fd is taken where it is
 * wanted. */
void init_call_answered(struct sandbox *sb, const struct im_head *answer, size_t n, int *fd,
			bool fd_lost);
/* The error for a descriptor that belongs to an answer and is not there. */
int init_call_no_fd(const struct init_call *c, struct err *e);
void init_call_end_all(struct sandbox *sb, const struct err *err);

/* ---- exec.c --------------------------------------------------------------------------------- */

void exec_exited(struct sandbox *sb, const struct im_exit *m);
void exec_end_all(struct sandbox *sb, const struct err *err);
void exec_hold_timeouts(struct sandbox *sb, bool hold);
uint64_t exec_count(const struct sandbox *sb); /* that run */

/* Runs f on the loop's next turn, so that no callback comes from inside the call that caused it. */
int box_later(struct box *box, void (*f)(void *arg), void *arg, struct err *e) MUST_USE;

/* Closes a heap-allocated handle and frees it when libuv has let go. NULL-safe. */
void box_close_handle(void *handle);

/*
 * Terminals in sandboxes. The hub opens both ends by itself, in a directory of the kernel's that
 * the sandbox's init has shown it: a master that init had opened would be shared with it, and
 * whoever shares it can have reading it wait.
 */

struct terminal_call;

/* master does not block; both are the callback's. err: there are none, and both are -1. */
typedef void terminal_cb(void *arg, int master, int slave, const struct err *err);

/* Later, once, unless it is cancelled. */
struct terminal_call *terminal_open_start(struct sandbox *sb, const struct exec_terminal *t,
					  terminal_cb *on_done, void *arg, struct err *e) MUST_USE;
void terminal_open_cancel(struct terminal_call *c); /* NULL-safe */

/* ERR_INVALID for a size that no terminal has. */
int terminal_check(unsigned columns, unsigned rows, struct err *e) MUST_USE;

/* The new size; what runs in it is told by SIGWINCH. */
int terminal_resize(int master, unsigned columns, unsigned rows, struct err *e) MUST_USE;

/* The same of one that is still waited for. */
void terminal_open_resize(struct terminal_call *c, unsigned columns, unsigned rows);

/* The character that ends input for who reads lines; 0: there is none, bytes are read as they come.
 * master -1: of one that nobody has used yet. */
char terminal_end_of_file(int master);
