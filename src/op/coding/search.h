#pragma once
/* A search by a program in the sandbox, whose output is read as it comes: what the files of this
 * folder share that do so. */
#include <stdatomic.h>

#include "call/aside.h"
#include "coding/glob.h"
#include "op/coding/session.h"

enum {
	SEARCH_SECONDS = 60,
	SEARCH_BYTES_MAX = 256 << 10, /* of an answer */
	SEARCH_RECORD_MAX = 64 << 10, /* of what the program prints of one file or line */
	SEARCH_COMPLAINT_MAX = 1024,
};

enum search_form {
	SEARCH_NULS, /* records end in NUL */
	SEARCH_LINES, /* they are lines */
	SEARCH_PATHS, /* they are a path, NUL, and a line */
};

struct search_hit {
	struct str path; /* as ripgrep prints it, without "./" */
	size_t nth;
	int64_t modified_ns; /* coding.glob */
	bool beside; /* a line of context */
	uint64_t line;
	struct str text; /* of the line */
};

/* In the call's arena. */
struct search {
	struct coding_work w; /* first: the two are cast */
	struct str root; /* absolute: below it, or it is a file */
	struct str said; /* for the program: relative to the workspace */
	struct search_hit *hits; /* owned, as their texts */
	size_t n, max;
	uint64_t found, matches; /* that came; of these in hits */
	bool more;
	size_t bytes;
	struct buf record; /* that is not whole yet */
	bool overlong; /* the rest of it is dropped */
	bool named; /* its path is whole */
	uint64_t lost; /* records that were dropped */
	struct buf complaint; /* what the program says of itself */
	struct exec *exec;
	atomic_bool enough;
	bool timed_out;
	uint64_t until_ns; /* of all programs together */
	/* A whole record. */
	void (*take)(struct search *s, struct str record);
	bool cuts; /* of one that is too long it gets the beginning; else it is dropped */
	void (*end)(struct search *s, int exit_code);
	enum search_form form;
	void (*drop)(struct search *s); /* what else it has; may be NULL */
	void (*failed)(struct search *s, const struct err *e); /* NULL: the call fails */
	bool reads; /* its standard input */
	bool held; /* by search_hold() */
	/* take() is called beside the loop: it must touch nothing of that. */
	bool apart;
	struct aside_work aside; /* also of s's owner, once its program has ended */
	struct buf came, taken; /* output that waits, and that take() gets now */
	bool taking, exited;
	int exit_code; /* of the program */
	struct err ended; /* how it failed */
	struct glob glob; /* coding.glob */
};

/* Of a zeroed one: root below path, which is for a command line. False: the call has failed. max:
 * of hits. */
bool search_begin(struct search *s, struct call *c, struct str path, size_t max);

/* Room for what is found, and the time begins. */
int search_ready(struct search *s, struct err *e) MUST_USE;
/* Starts a program: take() is called with each record, and end() once, unless the call has failed.
 * shown: for lists of programs. */
void search_start(struct search *s, struct str shown, const struct str *argv, size_t n);
/* Kills the program: enough was found. take() may call it. */
void search_stop(struct search *s);
/* Stops reading its output, or goes on. */
void search_hold(struct search *s, bool hold);
/* Adds to what the program says of itself, as far as there is room. */
void search_complain(struct search *s, struct str text);
void search_fail(struct search *s, const struct err *e);
void search_free(struct search *s);

/* Gives a hit texts of its own, in one piece. */
bool search_own(struct search_hit *hit);
/* Ends the call: r with the text and what the search knows of itself. */
struct coding_found;
extern const struct field_table coding_found_table;
void search_answer(struct search *s, struct buf *text, struct coding_found *r);

/* A path without the "./" before it. */
struct str search_tidy(struct str path);
/* A path as the program prints it, without what ripgrep says of binary files before it. */
struct str search_path(struct str path);
/* Appends a path as it is said in an answer. */
int search_say(struct str path, struct buf *to, struct err *e) MUST_USE;
