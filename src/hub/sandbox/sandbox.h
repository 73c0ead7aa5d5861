#pragma once
/*
 * The lifecycle of a hub's sandboxes, from creating to terminated. A `struct hub_sandbox` is one
 * sandbox as clients see it, with its id, deadlines and history. The engine's `struct sandbox`
 * (box/) belongs to it while it runs. One function sets states, and one table holds the allowed
 * transitions. Changes that give a client something are in the registry (store/) before they are
 * acknowledged.
 *
 * All functions must be called on the loop's thread. A `_start` function ends in exactly one
 * callback, never from inside the starting call. Its `struct err` is borrowed until it returns;
 * NULL means success. A `struct hub_sandbox *` is borrowed until the loop's next turn;
 * hub_sandbox_busy(l, +1) keeps it valid until the matching -1.
 *
 * When the registry can't be written, create, fork and set_timeout fail and are undone. Terminate,
 * pause, resume and losses take effect, and are written as soon as possible.
 */
#include "box/host/box.h"
#include "hub/sandbox/bound.h"
#include "hub/sandbox/volumes.h"

struct hub_sandboxes; /* all of a hub */
struct hub_sandbox; /* one */
struct store;

enum hub_sandbox_state {
	SANDBOX_CREATING,
	SANDBOX_RUNNING,
	SANDBOX_PAUSED,
	SANDBOX_COLD,
	SANDBOX_RESTORING,
	SANDBOX_STOPPED,
	SANDBOX_LOST, /* ended unexpectedly; stays until it is terminated */
	SANDBOX_TERMINATED,
	SANDBOX_FAILED, /* a part of it could not be removed */
	SANDBOX_STATES
};
extern const char *const hub_sandbox_state_names[SANDBOX_STATES];

/* The action at a deadline. */
enum hub_sandbox_retention {
	RETAIN_DESTROY,
	RETAIN_STOP,
	RETAIN_COLD,
	RETAIN_SNAPSHOT,
	RETENTIONS
};
extern const char *const hub_sandbox_retention_names[RETENTIONS];

/* Bytes of the name of whoever a sandbox or snapshot belongs to. */
enum { OWNER_MAX = 72 };

#define SANDBOX_TIMEOUT_MAX_MS (365ull * 86400 * 1000)

/* Borrowed for the call. */
/* Modules that its programs may call: names with blanks between, or "*"; STR_NONE: none.
 * ERR_UNSUPPORTED: nobody serves them (hub_sandboxes_inlets_to()). profiles: by which profiles of
 * the operator's file; opaque, for who serves them. */
struct hub_modules {
	struct str names, profiles;
};

struct hub_sandbox_spec {
	struct sandbox_spec box; /* its id is ignored */
	/* ^[a-zA-Z0-9][a-zA-Z0-9_-]{0,63}$; STR_NONE: "sbx-" and 32 hex digits. ERR_NAME_TAKEN:
	 * the id is in use. The id of a terminated sandbox is free; its next sandbox has a higher
	 * generation. */
	struct str id;
	struct str network; /* what is granted, as net_grant_parse() takes it; STR_NONE: nothing */
	struct str owner; /* at most OWNER_MAX bytes; STR_NONE: nobody */
	uint64_t idle_ms; /* end this long after the last use; 0: never */
	enum hub_sandbox_retention retention; /* ERR_INVALID: not supported here */
	struct str labels; /* opaque; STR_NONE: none */
	/* Instead of box.mounts (volumes_find()). */
	const struct volume *volumes;
	size_t n_volumes;
	bool by_operator;
	/* Secrets that are bound to hosts of `network` (hub/sandbox/bound.h). */
	struct bound_spec secrets;
	struct hub_modules modules;
};

/* Connections to what a sandbox is granted, by this hub. */
struct network_counts {
	uint64_t opened, denied, failed; /* failed: allowed, and the host was not reached */
	uint64_t sent, received; /* bytes; of those that go on a little less */
};

/* Borrowed until the next change. */
struct hub_sandbox_info {
	uint64_t seq; /* increases in order of creation, never reused */
	/* source: id of the sandbox it was forked from, else STR_NONE */
	struct str id, template, source;
	struct str labels; /* as given; STR_NONE: none */
	enum hub_sandbox_state state;
	/* from 1; increases each time that the sandbox behind the id is replaced */
	uint32_t generation;
	int64_t created_ms, changed_ms; /* Unix time; changed: when it entered its state */
	/* Unix time; 0: none. Of a stopped one, until when its files are kept. */
	int64_t deadline_ms;
	int64_t runs_until_ms; /* the same while it ran last */
	uint64_t ttl_ms, idle_ms; /* as requested at creation or by set_timeout; 0: none */
	enum hub_sandbox_retention retention;
	const struct limits *limits;
	const struct volumes *volumes; /* NULL: none */
	uint32_t volumes_gone; /* a bit for each that it has started without, as this hub knows */
	struct str network; /* as in hub_sandbox_spec */
	uint64_t network_revision; /* another after each change of it */
	struct hub_modules modules; /* likewise */
	struct str owner; /* empty: it belongs to nobody; a fork has that of its source */
	const struct network_counts *network_counts;
	bool from_pool;
	double made_ms; /* as noted; 0: this hub does not know */
	bool adopted; /* running, and made by an earlier hub */
	/* the reason if it is lost, failed, or terminated by a deadline; else NULL */
	const struct err *why;
	/* files that the revision made at its end has not, and the first of their names */
	uint32_t left_out;
	struct str left_out_names; /* STR_NONE: not known */
};

/* l is NULL with err. */
typedef void (*hub_sandbox_cb)(void *arg, struct hub_sandbox *l, const struct err *err);

/* Reads the registry. store: borrowed; NULL: nothing outlives this process. hub_sandboxes_adopt()
 * must be called once, before any other function. */
struct hub_sandboxes *hub_sandboxes_new(uv_loop_t *loop, struct store *store,
					struct err *e) MUST_USE;

/* What the operator allows of the host, "DIR" or "DIR:rw" each; borrowed for the call. */
int hub_sandboxes_allow_volumes(struct hub_sandboxes *all, const char *const *roots, size_t n,
				struct err *e) MUST_USE;

/* For box_config.on_end, with the sandboxes as its argument. */
void hub_sandboxes_on_end(void *sandboxes, struct sandbox *sb, const struct err *why);

/* Takes over the sandboxes that outlived an earlier hub. Those that are alive in the registry keep
 * their generation; those that it does not know are destroyed; those that are only in the registry
 * become lost. The box is borrowed until it is closed. */
void hub_sandboxes_adopt(struct hub_sandboxes *all, struct box *box,
			 struct sandbox *const *sandboxes, size_t n);

/* Keeps files of sandboxes beyond their end: hub/workspace. holds: whether it has to save those of
 * this one. save: before it ends, also of a paused one. */
struct hub_keeper {
	bool (*holds)(void *data, const struct hub_sandbox *l);
	void (*save)(void *data, struct hub_sandbox *l, hub_sandbox_cb on_done, void *arg);
	void *data;
};
/* Borrowed until hub_sandboxes_close() has ended. */
void hub_sandboxes_set_keeper(struct hub_sandboxes *all, const struct hub_keeper *k);
/* The sandbox in that row, unless it has ended for good; NULL: there is none. */
struct hub_sandbox *hub_sandboxes_by_seq(struct hub_sandboxes *all, uint64_t seq);
/* The warden no longer ends it at its deadline, since it could not save its files. */
void hub_sandbox_hold(struct hub_sandbox *l);

/* Network grants are served by nets (hub/net), which is borrowed until hub_sandboxes_close() has
 * ended. Before hub_sandboxes_adopt(). Without it none are. */
struct nets;
struct net_secret;
struct nw_exchange;
struct nw_flow;
void hub_sandboxes_serve_networks(struct hub_sandboxes *all, struct nets *nets);
/* Where values of bound secrets come from. */
struct hub_secret {
	struct err err; /* code: why there is none */
	struct str value, trust; /* as in struct net_secret */
	const struct net_rule *hosts;
	size_t n_hosts;
	/* Of a log-in, whose value is its access token's; and where it gets new ones. Both are
	 * there, with no real value, also before it has tokens (ERR_SECRET_NOT_FOUND). */
	const struct net_secret *tokens;
	size_t n_tokens;
	const struct nw_exchange *exchanges;
	size_t n_exchanges;
};
/* p: in the order of the names, borrowed until it returns. */
typedef void (*hub_secrets_cb)(void *arg, const struct hub_secret *p);
struct hub_secrets {
	/* Reads what this principal may use now; STR_NONE: the operator's file itself. on_read
	 * comes once, later from the loop. */
	void (*read_start)(void *data, struct str who, bool by_operator, const struct str *names,
			   size_t n, hub_secrets_cb on_read, void *arg);
	/* Keeps the tokens that a log-in has got with the body of an answer: *ret_now is the
	 * log-in with them, borrowed until the next call, and what is appended to ret_body is the
	 * same body with placeholders. n_tokens 0: the answer has none. */
	int (*keep)(void *data, struct str name, bool begins, struct str body,
		    struct hub_secret *ret_now, struct buf *ret_body, struct err *e);
	void *data;
};
/* from: borrowed until hub_sandboxes_close() has ended. Sandboxes of an earlier hub that wait for
 * it are served. */
struct net_rule;
void hub_sandboxes_secrets_from(struct hub_sandboxes *all, const struct hub_secrets *from);
/* They may be others now: sandboxes get them anew. */
void hub_sandboxes_secrets_changed(struct hub_sandboxes *all);
/* For sandboxes that no list has: placeholders and an authority, of which the caller owns a
 * reference (bound_end()), and their values for `to`. on_bound comes once, later from the loop.
 * ERR_INVALID for a secret that none of the rules reaches a host of. */
struct bound;
struct bound_spec;
struct net;
struct net_grant;
struct bound *hub_sandboxes_bind(struct hub_sandboxes *all, const struct bound_spec *s,
				 struct err *e) MUST_USE;
int hub_sandboxes_bind_values(struct hub_sandboxes *all, const struct bound *b, struct net *to,
			      const struct net_grant *reach,
			      void (*on_bound)(void *arg, const struct err *err), void *arg,
			      struct err *e) MUST_USE;
/* Answers programs of sandboxes that were made with modules. */
struct hub_inlets {
	struct sandbox_address at; /* where they ask, in their network */
	/* listener has a connection, which must be accepted. */
	void (*on_connection)(void *data, struct hub_sandbox *l, uv_stream_t *listener);
	void *data;
};
/* to: borrowed until NULL replaces it. Sandboxes of an earlier hub that wait for it are served. */
void hub_sandboxes_inlets_to(struct hub_sandboxes *all, const struct hub_inlets *to);
/* A listener for what the networks of sandboxes do, as the registry's events tell it. To be set
 * before the first sandbox; NULL: none. kind: "network.denied" and so on; detail: JSON. */
struct hub_flow {
	const char *kind;
	struct str sandbox, owner, detail;
	bool denied, failed;
	uint64_t ms, bytes; /* in both directions */
};
void hub_sandboxes_tell_flows(struct hub_sandboxes *all,
			      void (*on_flow)(void *data, const struct hub_flow *f), void *data);
/* Tells them that the program of a module asked for what it is not granted. */
void hub_sandboxes_tell_denied(struct hub_sandboxes *all, struct str module, struct str detail);
/* For nets_options.on_flow, with the sandboxes as its owner. */
void hub_sandboxes_on_flow(void *sandboxes, void *of, const struct nw_flow *f);

/* A request of a sandbox's program that a rule of its grant wants a person to see. Borrowed. */
struct hub_question {
	uint64_t id;
	struct str sandbox, owner, method, host, target, rule;
	uint64_t seq; /* of the sandbox */
	uint16_t port;
};
/* Receives questions of sandboxes, and answers later, or from inside, by hub_sandboxes_answer().
 * leave: nobody waits any more; ended: since the sandbox has ended. gone: a sandbox has ended. */
struct hub_asker {
	void (*ask)(void *data, const struct hub_question *q);
	void (*leave)(void *data, uint64_t id, bool ended);
	void (*gone)(void *data, uint64_t seq);
	void *data;
};
void hub_sandboxes_ask_by(struct hub_sandboxes *all, const struct hub_asker *by); /* NULL: nobody */
void hub_sandboxes_answer(struct hub_sandboxes *all, uint64_t id, bool allow, const char *why);
/* For nets_options, as above. */
struct nw_ask;
void hub_sandboxes_on_ask(void *sandboxes, void *of, uint64_t id, const struct nw_ask *m);
void hub_sandboxes_on_leave(void *sandboxes, uint64_t id, bool ended);
int hub_sandboxes_on_tokens(void *sandboxes, struct str name, bool begins, struct str body,
			    struct buf *ret, struct err *e);

/* What a sandbox may use until it ends, as at a deadline: in all its generations, and what its
 * source had used when it was forked. Bytes out: the output of commands, files read, and what its
 * ports and connections sent; those of ports, commands and files are counted anew by each hub. */
struct hub_sandbox_budget {
	uint64_t cpu_ms, bytes_out; /* 0: as much as it likes */
	/* Its life from creation on, also while it is stopped; whoever makes it holds it to that
	 * (hub_sandbox_set_timeout()), and when it is resumed it is held to that here. */
	uint64_t wall_ms;
};
/* budget_of tells what the sandboxes of an owner may use; NULL: nothing is limited. Call it again
 * when its answers have changed. */
void hub_sandboxes_limit(struct hub_sandboxes *all,
			 void (*budget_of)(void *data, struct str owner,
					   struct hub_sandbox_budget *ret),
			 void *data);

/* Before hub_sandboxes_stop() or hub_sandboxes_leave(): stops each sandbox that runs, as
 * hub_sandbox_stop_start() does, a few at a time. The next call for one starts it again
 * (hub_sandbox_wake_start()). The files of one that is to end when it is not used (idle_ms,
 * RETAIN_DESTROY) are kept for that time. on_left hears of each that could not be saved; they run
 * on. failed: how many. */
struct hub_keeping {
	void (*on_left)(void *arg, struct str sandbox, const struct err *why);
	void (*on_done)(void *arg, size_t failed);
};
void hub_sandboxes_keep_start(struct hub_sandboxes *all, const struct hub_keeping *f, void *arg);
/* How many it would stop. */
unsigned hub_sandboxes_staying(const struct hub_sandboxes *all);
/* The hub is ending: no operation starts any more, and sandboxes that end from now on are
 * terminated, not lost. */
void hub_sandboxes_stop(struct hub_sandboxes *all);
/* The hub ends, but its sandboxes stay for the next one: the registry keeps them unchanged. */
void hub_sandboxes_leave(struct hub_sandboxes *all);
/* Only before hub_sandboxes_adopt(); NULL-safe. */
void hub_sandboxes_free(struct hub_sandboxes *all);
/* After the box is closed: waits for pending operations, then frees all. */
void hub_sandboxes_close(struct hub_sandboxes *all, void (*on_closed)(void *arg), void *arg);

typedef void (*hub_sandbox_fork_cb)(void *arg, struct hub_sandbox *const *children, size_t n,
				    const struct err *err);

void hub_sandbox_create_start(struct hub_sandboxes *all, const struct hub_sandbox_spec *spec,
			      hub_sandbox_cb on_done, void *arg);

/* Borrowed for the call. */
struct hub_sandbox_fork_spec {
	size_t n; /* 1 to 64 */
	const struct str *ids; /* n of them, or NULL; as in hub_sandbox_spec */
	bool has_labels; /* false: those of the source */
	struct str labels; /* as in hub_sandbox_spec */
};
/* Makes all or none. The children run, with the source's deadlines counted from now. The source is
 * frozen while it is copied, and is then running or paused as before. */
void hub_sandbox_fork_start(struct hub_sandbox *source, const struct hub_sandbox_fork_spec *spec,
			    hub_sandbox_fork_cb on_done, void *arg);

/* Also frees the id of a lost or failed sandbox. ERR_SANDBOX_NOT_FOUND: already terminated. If the
 * keeper can't save its files, that is the error, and the sandbox runs on. */
void hub_sandbox_terminate_start(struct hub_sandbox *l, hub_sandbox_cb on_done, void *arg);
/* The same, without what a keeper would save. */
void hub_sandbox_discard_start(struct hub_sandbox *l, hub_sandbox_cb on_done, void *arg);

/* Idempotent. */
void hub_sandbox_pause_start(struct hub_sandbox *l, hub_sandbox_cb on_done, void *arg);
void hub_sandbox_resume_start(struct hub_sandbox *l, hub_sandbox_cb on_done, void *arg);

/* Whether it was stopped by the end of its hub alone, or is being started again from that. */
bool hub_sandbox_wakes(const struct hub_sandbox *l);
/* Starts such a one again, with the time to live that it had left. Several may ask. */
void hub_sandbox_wake_start(struct hub_sandbox *l, hub_sandbox_cb on_done, void *arg);

/* Replaces what the sandbox is granted; text as in hub_sandbox_spec. Connections that stay allowed
 * go on, the others end. revision: ERR_CONFLICT if it is another by now; 0: whatever it is. */
void hub_sandbox_set_network_start(struct hub_sandbox *l, struct str text, uint64_t revision,
				   hub_sandbox_cb on_done, void *arg);

/* Sets the time to live, counted from now; 0: none. Fails unless the sandbox is running or paused.
 */
int hub_sandbox_set_timeout(struct hub_sandbox *l, uint64_t ms, struct err *e) MUST_USE;

/* Fails with ERR_SANDBOX_NOT_FOUND. */
int hub_sandboxes_unknown(struct str id, struct err *e);

/* NULL with ERR_SANDBOX_NOT_FOUND. Terminated sandboxes are found for a while, too. */
struct hub_sandbox *hub_sandboxes_find(struct hub_sandboxes *all, struct str id,
				       struct err *e) MUST_USE;

/* Up to max with a seq above `after` (0: from the start), in order of creation. */
size_t hub_sandboxes_list(struct hub_sandboxes *all, uint64_t after, struct hub_sandbox **ret,
			  size_t max);
void hub_sandbox_info(const struct hub_sandbox *l, struct hub_sandbox_info *ret);
/* How long it took to make, which is not in the registry. */
void hub_sandbox_note_made(struct hub_sandbox *l, double ms);
/* For the keeper: what it did not save. Also an event of the sandbox. */
void hub_sandbox_note_left_out(struct hub_sandbox *l, uint32_t n, struct str names);

struct hub_sandboxes_stats {
	uint64_t by_state[SANDBOX_STATES];
	uint64_t reap_failures; /* deadlines that could not be carried out at once */
	uint64_t store_failures; /* changes that could not be written to the registry at once */
	uint64_t unsaved; /* of them, those that are still not written */
	unsigned commands, forwards; /* in the background; both end with this hub */
};
void hub_sandboxes_stats(const struct hub_sandboxes *all, struct hub_sandboxes_stats *ret);

/* Events from the registry, in order: up to max with a seq above `after`, of this sandbox
 * and of what belongs to this owner, or of all with STR_NONE. Strings are borrowed until each()
 * returns. Without a registry there are no events. */
struct hub_sandbox_event {
	uint64_t seq;
	int64_t at_ms; /* Unix time */
	/* kind: created, resumed, restored, snapshot, deadline, left_out, volume_gone,
	 * reap_failed, or a state */
	struct str sandbox, kind, detail;
	struct str owner; /* of the sandbox */
};
/* seq of the oldest and newest event that are kept; 0: there is none. */
int hub_sandboxes_events_kept(struct hub_sandboxes *all, uint64_t *ret_oldest, uint64_t *ret_newest,
			      struct err *e) MUST_USE;
struct hub_sandbox_events {
	uint64_t after;
	struct str sandbox, owner;
};
int hub_sandboxes_events(struct hub_sandboxes *all, const struct hub_sandbox_events *of,
			 unsigned max, void (*each)(void *arg, const struct hub_sandbox_event *v),
			 void *arg, struct err *e) MUST_USE;

/* on_events tells, later and once for many, that there may be new events. The caller owns the
 * struct, which must stay valid from add to remove. */
struct hub_sandboxes_watch {
	struct hub_sandboxes_watch *next;
	void (*on_events)(void *arg);
	void *arg;
};
void hub_sandboxes_watch_add(struct hub_sandboxes *all, struct hub_sandboxes_watch *w);
void hub_sandboxes_watch_remove(struct hub_sandboxes *all, struct hub_sandboxes_watch *w);

/* Waits until what the registry must keep over a power cut is on the disk. false: it is already,
 * and on_done is not called. The caller owns the struct, which must stay valid until on_done, which
 * is never called from within. */
struct hub_sandboxes_sync {
	struct hub_sandboxes_sync *next;
	void (*on_done)(struct hub_sandboxes_sync *w, const struct err *err);
};
bool hub_sandboxes_sync(struct hub_sandboxes *all, struct hub_sandboxes_sync *w) MUST_USE;

/* Increases with each change of what hub_sandboxes_list() and hub_sandbox_info() return. */
uint64_t hub_sandboxes_changes(const struct hub_sandboxes *all);

/* The sandbox of a running or paused sandbox; does not count as a use. Else NULL with a typed
 * error. */
struct sandbox *hub_sandbox_machine(struct hub_sandbox *l, struct err *e) MUST_USE;

/* The engine's sandbox of a running one, for exec and files. Counts as a use. Else NULL with an
 * error that names the state: ERR_PAUSED; ERR_GUEST: lost; ERR_IDLE or ERR_SANDBOX_NOT_FOUND:
 * terminated; ERR_CONFLICT: the state is changing. */
struct sandbox *hub_sandbox_sandbox(struct hub_sandbox *l, struct err *e) MUST_USE;

/* The engine's sandbox in whatever state, for a keeper; NULL: nothing runs. */
struct sandbox *hub_sandbox_box(struct hub_sandbox *l);

/* +1 at the start of an exec, a file operation or a stream, -1 at its end. A busy sandbox is not
 * idle, and l stays valid. */
void hub_sandbox_busy(struct hub_sandbox *l, int by);
