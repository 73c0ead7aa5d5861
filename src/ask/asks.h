#pragma once
/*
 * What approvals and questions share: requests to people, in order of their making, each open until
 * it is answered or its deadline. Those that have ended are kept for a while. Each kind has rows of
 * its own in the registry.
 */
#include <uv.h>

#include "base/buf.h"
#include "store/store.h"

/* The first member of each kind. */
struct ask {
	struct ask *next;
	uint64_t seq; /* in order of making */
	uint64_t rev; /* in order of changes */
	struct str id, principal;
	int64_t created_ms, deadline_ms; /* Unix time; deadline_ms 0: none */
	bool open; /* its deadline counts */
	bool takes_room; /* of those that may be open */
	unsigned held; /* not to be freed */
};

struct asks_watch {
	void (*on_change)(void *data); /* after each change */
	void *data;
	struct asks_watch *next; /* private */
};

struct asks_options {
	unsigned max_open; /* of all principals */
	unsigned max_each; /* of each */
	/* Who pays for a principal: all of one payer may have at most as many as are free of
	 * max_open. STR_NONE: nobody, it has room of its own beside that. NULL: each pays for
	 * itself. Borrowed from principal, or until the loop's next turn. */
	struct str (*payer)(void *data, struct str principal);
	/* One was made or changed. It must not call back. May be NULL. */
	void (*on_change)(void *data, const struct ask *a);
	void *data;
};

struct asks;

struct asks_kind {
	const char *noun, *many; /* "question", "questions": for messages and the log */
	enum err_code missing;
	unsigned closed_max; /* that are kept after their end */
	/* Its deadline has come. Waiters start and end calls, which may ask again. */
	void (*expire)(struct asks *all, struct ask *a);
	int (*drop)(struct store *s, uint64_t seq, struct err *e);
	void (*free)(struct ask *a);
};

struct asks {
	uv_timer_t timer; /* the next deadline */
	const struct asks_kind *kind;
	struct store *store; /* NULL: nothing outlives this process */
	struct asks_options o;
	struct ask *first, **last;
	struct asks_watch *watches;
	uint64_t rev; /* the highest */
};

/* all is the first member of memory that asks_fini() frees; not where this fails. */
int asks_init(struct asks *all, uv_loop_t *loop, const struct asks_kind *kind, struct store *store,
	      const struct asks_options *o, struct err *e) MUST_USE;
/* Nobody waits. The loop runs once more, and frees what all is in. */
void asks_fini(struct asks *all);

void asks_add(struct asks *all, struct ask *a);
/* Tells watches of a change. */
void asks_tell(struct asks *all, const struct ask *a);
/* Ends those whose deadline has come, forgets the oldest of those that have ended, and sets the
 * timer. */
void asks_expire(struct asks *all);
/* ERR_LIMIT: this principal, or who pays for it, has no room for one more. */
int asks_check_room(const struct asks *all, struct str principal, struct err *e) MUST_USE;
struct str asks_payer(const struct asks *all, struct str principal);

/* NULL: there is none. */
const struct ask *asks_find(const struct asks *all, struct str id, struct err *e) MUST_USE;
/* The first with a seq above this; NULL: none. */
const struct ask *asks_after(const struct asks *all, uint64_t seq);

void asks_watch_add(struct asks *all, struct asks_watch *w);
void asks_watch_remove(struct asks *all, struct asks_watch *w);

/* The index of text; -1: it is none of them. */
int asks_name(struct str text, const char *const names[], int n);
