#pragma once
/* The warden's state and the bodies in it, shared by those of its files that change them; warden.h lists all. */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "box/warden/warden.h"

enum body_state {
	BODY_FREE,
	BODY_STARTING, /* its process sets itself up */
	BODY_READY, /* in the pool */
	BODY_LIVE, /* the hub has it */
	BODY_DYING, /* killed; its end is awaited */
	BODY_SWEEPING, /* ended; its control groups are still busy */
};

/* Of a LIVE one; sleep.c has how they follow each other. */
enum body_sleep {
	BODY_AWAKE,
	BODY_FALLING, /* its process is killed; its end is awaited */
	BODY_ASLEEP, /* it has none */
	BODY_WAKING, /* its new process sets itself up */
};

/* One request of the hub that waits for bodies. */
struct request {
	uint32_t seq;
	uint32_t wanted, ready; /* bodies */
	struct body *bodies[WIRE_FORK_MAX];
	bool forsaken; /* the hub that made it is gone */
	bool failed;
	struct err err;
};

struct mount_spec {
	char *host, *guest;
	bool writable;
	uint64_t size; /* 0: any */
};

/* Of a sandbox since it was made, or since those before it in the same groups were. */
struct cpu_time {
	uint64_t ran_us; /* on all processors */
	uint64_t waited_us; /* while something of it waited for one */
};

struct body {
	enum body_state state;
	uint64_t key;
	pid_t pid;
	int pidfd;
	/* The hub's end of it; given away when it goes live, unless the warden outlives the hub or it has slept. */
	int socket;
	uint32_t uid;
	struct chain chain;
	struct limits limits;
	uint64_t cpu_before_us; /* of earlier sandboxes, in what its groups have counted */
	uint64_t looked_ms; /* whether it computes was last looked for; 0: not since it is awake */
	struct cpu_time cpu; /* then */
	uint64_t loud_ms; /* when it last did */
	bool yields; /* its group does */
	struct mount_spec mounts[WIRE_MOUNTS_MAX];
	uint32_t n_mounts;
	struct request *request; /* that it is made for; NULL: for the pool */
	bool filling; /* STARTING for the pool */
	uint32_t destroy_seq; /* to be answered when it is gone */
	bool answer_destroy;
	bool paused; /* frozen because the hub asked for it */
	uint64_t paused_ms; /* since when */
	enum body_sleep sleep;
	uint32_t sleep_seq, wake_seq; /* to be answered when it is asleep, awake; 0: nobody asks */
	uint32_t
		made_seq; /* LIVE: of the WM_CREATED of this hub that told of it; 0: of an earlier one's */
	uint64_t dies_at_ms; /* carried out by the warden when there is no hub; 0: never */
	char *record; /* owned, NULL: the hub has not confirmed it */
	size_t record_n;
	bool still; /* paused, as the record has it */
};

/* Work in a process of its own. */
struct job {
	pid_t pid; /* 0: free */
	int pidfd;
	struct body *source; /* NULL when it is gone meanwhile */
	struct layer *out;
	/* a fork: the request that goes on when the files are copied */
	struct request *request;
	bool frozen; /* by us */
	/* a squash: the layers that `out` replaces */
	struct chain squashed;
	/* writing what `source` has changed: the request to answer; 0: it is none */
	uint32_t write_seq;
	bool forsaken; /* who asked is gone */
	char image[WIRE_IMAGE_MAX];
};

enum { JOBS_MAX = 64, POOL_MAX = 64, NETS_MAX = 16 };

struct warden {
	struct host host;
	struct store store;
	struct cgroups cgroups;
	struct limits pool_limits;
	uint32_t pool_size, max_bodies; /* as the hub of the moment wishes */
	struct body *bodies; /* [BODIES_MAX] */
	uint32_t n_bodies; /* slots that were ever used: what loops look at */
	uint32_t *free_slots, n_free; /* of those, the free ones */
	struct body *ready[POOL_MAX];
	uint32_t n_ready, n_filling, n_sweeping, n_live;
	int nets[NETS_MAX]; /* network namespaces made in advance */
	uint32_t n_nets, want_nets;
	int net_maker; /* socket of the process that makes them; -1: none */
	pid_t net_maker_pid;
	struct job jobs[JOBS_MAX];
	uint32_t *uid_refs; /* [BODIES_MAX] */
	uint64_t last_key;
	int hub; /* -1: there is none at the moment */
	int epoll, janitor;
	uint64_t refill_at; /* clock_ms() */
	struct {
		uint64_t next_ms; /* 0: nobody is watched */
		uint32_t from; /* where the last pass ended */
		bool any; /* in the passes of this round */
	} looks; /* at who computes: yield.c */
	bool closing;
	bool kept; /* outlives its hub: see keep.c */
};

extern struct warden warden;

/* A message of the hub's: at least as long as the table in warden.c says. */
struct hub_message {
	const void *p; /* a struct wm_… that begins with wm_head */
	size_t n;
	int fd; /* came with it; -1: none. Borrowed */
};

/* Carries it out, and answers it now or later; -1: the error is the answer. */
typedef int hub_message_fn(const struct hub_message *in, struct err *e);

/* ---- warden.c: the hub and the loop ---- */

void send_hub(const void *msg, size_t n, const int *fds, size_t n_fds);
void send_failed(uint32_t seq, const struct err *e);
void send_pool(void);

/* Handles one message of the hub's, or its end. */
void hub_says(void);

enum tag { TAG_SOCKET, TAG_PIDFD, TAG_JOB, TAG_HUB, TAG_NET, TAG_LISTENER, TAG_MASK = 7 };
/* Has the loop tell when fd is readable; tag says which part of `what` it belongs to. */
int watch(int fd, const void *what, enum tag tag);
/* Closes it. Closing alone would not stop the telling, while a child that has not yet executed its
 * program still holds it. */
void unwatch(int *fd);

/* ---- keep.c ---- */

/* Begins to listen for the hub after this one. */
int keep_start(const struct wm_hello *m, struct err *e);
void hub_arrived(void); /* one wants to connect */
/* The first message of one that has connected, with its standard error or -1. */
void hub_begins(const struct wm_hello *m, size_t n, int log);
bool hub_is_new(void); /* it has not said it yet */
void hub_gone(void);
hub_message_fn end_with_hub;
hub_message_fn keep_record;
/* Whether m is of the build that this is. */
bool same_build(const struct wm_hello *m, size_t n);
/* Does what is due while no hub does it; gives the time until there is more, -1: none. */
int keep_chores(uint64_t now);

/* ---- body.c ---- */

uint32_t slot_of(const struct body *b);
struct body *new_body(struct err *e);
struct body *find_body(uint64_t key); /* a live one; NULL: none */
struct body *find_awake(uint64_t key, struct err *e); /* one that has its process */
uint32_t share_uid(uint32_t uid); /* one more user of a family's id */
void kill_body(struct body *b);
void sweep_body(struct body *b); /* the last step, possibly after some tries */
void body_died(struct body *b);
void body_says(struct body *b); /* its socket is readable while it sets itself up */

struct request *new_request(uint32_t seq, uint32_t wanted, struct err *e);
void drop_request_bodies(struct request *r);

/* Starts the process of a body whose frozen layers, uid, limits and mounts are set, on a new
 * writable layer of `disk` bytes; it answers later, on its socket. On failure the body is gone. */
int start_body(struct body *b, uint64_t disk, struct err *e);
int abandon_body(struct body *b); /* undoes what there is of it; -1 */
/* Starts another process of one that is asleep; likewise. On failure its pidfd tells whether there is one. */
int restart_body(struct body *b, struct err *e);

hub_message_fn create;
bool pool_full(void); /* with those on the way */
void pool_refill(void); /* one more */

/* ---- sleep.c ---- */

hub_message_fn sleep_body; /* answers, unless it fails */
hub_message_fn wake_body; /* likewise */
void body_slept(
	struct body *b); /* its process is reaped, which was told to end, or to set itself up */
void body_awake(struct body *b); /* it has set itself up */
void wake_failed(struct body *b, const struct err *e); /* or could not */

/* ---- usage.c ---- */

hub_message_fn say_usage;
/* Processor time in the groups of a slot, in microseconds; 0 where nobody counts. */
uint64_t cpu_counted(uint32_t slot);
bool cpu_time(uint32_t slot, struct cpu_time *ret); /* false: it can't be read */
/* What its memory limit still lets it have, in bytes; UINT64_MAX where nobody counts. */
uint64_t memory_left(const struct body *b);

/* ---- yield.c ---- */

void yield_watch(struct body *b); /* it is awake, which it was not */
void yield_paused(struct body *b, bool paused); /* before it is set */
void set_yields(struct body *b, bool yields); /* what is to end must not give way */
/* As cgroup_freeze(): what gives way could take long to stand still beside others. */
int freeze_body(struct body *b, bool frozen, struct err *e) MUST_USE;
int yield_chores(uint64_t now); /* gives the time until there is more, -1: none */

/* ---- socket.c ---- */

hub_message_fn give_socket; /* answers, unless it fails */

/* ---- fork.c ---- */

hub_message_fn fork_body;
hub_message_fn pause_body; /* answers, unless it fails */
void job_ended(struct job *j);
bool is_copied(const struct body *b); /* and frozen for that */
bool is_source(const struct body *b); /* some job reads its files */
void forget_source(const struct body *b); /* it ends: no job may touch it */
void forsake_copies(
	void); /* those of forks that a hub has left, and what it has written: they stop */
struct job *new_job(struct err *e);
void thaw(const struct body *b);

/* ---- write.c ---- */

/* fd is borrowed. Answers when all is written. */
hub_message_fn write_body;
void written(struct job *j, int errnum);

/* ---- net.c ---- */

/* A network namespace with its loopback up; -1: none is ready, the sandbox makes its own. */
int net_take(void);
bool nets_full(void); /* or being made */
void nets_refill(void);
void net_arrived(void); /* the maker's socket is readable */
void nets_fini(void);

/* ---- host.c ---- */

int warden_setup(const struct wm_hello *m, const char *init, struct err *e);
/* Takes over what another hub wishes of a warden that is set up. */
int warden_set_anew(const struct wm_hello *m, struct err *e);
