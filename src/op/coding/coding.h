#pragma once
/* The operations of the tool set "coding": requests and results that doors look at. */
#include "op/coding/session.h"
#include "op/ops.h"

/* coding.read */
struct coding_text {
	struct str text; /* numbered lines */
	struct str path; /* as it is said (coding/path.h) */
	uint64_t size; /* bytes of the file */
	uint64_t first, lines; /* that are in text */
	uint64_t total; /* lines of the file, if has_total */
	bool has_total;
	uint64_t next; /* line to read on at, if has_next */
	bool has_next;
	bool binary; /* text is empty */
	uint64_t bad; /* bytes that are no UTF-8 */
};

/* coding.write, coding.edit */
struct coding_written {
	struct str path;
	uint64_t bytes; /* of the file */
	uint64_t replaced; /* coding.edit */
	bool is_new;
};

/* coding.glob, coding.grep */
struct coding_found {
	struct str text; /* a line for each */
	uint64_t shown; /* that are in text, without lines of context */
	bool more;
	uint64_t total; /* if has_total: it came to the end */
	bool has_total;
	bool timed_out;
	struct str complaint; /* what the program said of itself */
};

/* coding.search */
struct coding_symbols {
	struct str text; /* "PATH:LINE  KIND NAME  TEXT", a line for each */
	uint64_t shown, total;
	bool words;
	uint64_t files, unread;
};
