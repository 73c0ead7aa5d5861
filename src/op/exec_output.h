#pragma once
/*
 * What execs print: exec.output reads it from an offset on, or follows it; exec.kill ends the exec
 * first; exec.wait waits for a text, a pattern or the end; exec.attach follows it, and sends what
 * its client says (struct exec_word). A follower who is slow reads later, from
 * the file of the output; he never holds the program.
 */
#include "hub/sandbox/job_wait.h"
#include "op/exec.h"

enum exec_streams { EXEC_STREAMS_OUT, EXEC_STREAMS_ERR, EXEC_STREAMS_BOTH };

/* ---- exec.output --------------------------------------------------------------------------- */

struct exec_output_request {
	struct str sandbox, exec;
	uint64_t offset;
	uint32_t max_bytes;
	enum exec_streams stream;
	bool follow;
	/* First it waits: for its end, a text or a pattern. */
	uint32_t wait_seconds;
	struct str wait_for, wait_pattern;
	bool kill; /* of exec.kill */
};

struct exec_chunk {
	enum exec_chunk_stream { EXEC_CHUNK_OUT, EXEC_CHUNK_ERR } stream;
	uint64_t offset;
	struct str bytes;
};
extern const struct field_table exec_chunk_table;

/* The same bytes twice: in the order in which they came, and by their stream. */
struct exec_output {
	struct str exec;
	struct {
		struct exec_chunk *p;
		size_t n;
	} chunks;
	struct str out, err;
	uint64_t next_offset, dropped_bytes;
	bool eof, found;
	enum job_state state;
	bool has_exit_code;
	int32_t exit_code;
};
extern const struct field_table exec_output_table;

/* ---- exec.wait ----------------------------------------------------------------------------- */

struct exec_waited {
	enum job_waited result;
	uint64_t offset;
	enum job_state state;
	bool has_exit_code;
	int32_t exit_code;
};

/* ---- followers ----------------------------------------------------------------------------- */

/* What a follower is told. */
struct exec_news {
	enum exec_news_kind {
		EXEC_NEWS_CHUNK,
		EXEC_NEWS_DROPPED,
		EXEC_NEWS_END,
		EXEC_NEWS_ATTACHED, /* first, where it is attached */
	} kind;
	/* Of the first byte; of the end: behind the last one. */
	uint64_t offset;
	uint64_t dropped; /* bytes of both streams that are not kept any more */
	bool tty, stdin_open; /* of one that is attached */
	enum job_state state; /* of the end */
	struct exec_event event; /* of a chunk, and of the end */
};
extern const struct field_table exec_news_table;

/* After how long what redaction holds back leaves: what is typed has to be seen. */
enum { QUIET_TTY_MS = 20, QUIET_MS = 250 };

/* What a wait sees of a job's output. */
struct exec_sight {
	struct call *call;
	uint64_t offset; /* what is before it is only looked at, for redaction */
};
extern const struct wait_view exec_view; /* its argument: a struct exec_sight */

/* The bytes of a piece from an offset on. Those before it are only looked at, for redaction. */
struct str exec_bytes_from(struct call *c, const struct spool_piece *piece, uint64_t offset);

/* From where to read, so that what was cut by offset can be redacted. */
uint64_t exec_look_from(struct call *c, struct job *j, uint64_t offset);

struct exec_following {
	struct call *call;
	unsigned streams; /* 1 << stream */
	/* Once, and then it must stop. err: its client has gone; NULL: the exec has ended. */
	void (*on_end)(struct exec_following *f, const struct err *err);
	/* filled by exec_follow_start(): */
	struct job *job; /* a reference */
	struct spool_cursor *cursor;
	bool telling; /* where the client may go away */
	uint64_t from; /* what is before it is only looked at, for redaction */
	uint64_t held_at[2]; /* where begins what redaction holds back of a stream */
	struct err lost; /* at the end: why it has no result, or ERR_NONE */
};
/* Opens the stream of a call that only waits from here on; -1: nothing is left to stop. Then
 * exec_follow_on(). */
int exec_follow_start(struct exec_following *f, struct job *j, uint64_t offset,
		      struct err *e) MUST_USE;
/* Tells what there is. */
void exec_follow_on(void *f);
void exec_follow_stop(struct exec_following *f);
