#pragma once
/*
 * Text of a stranger, made safe to show to a person, a model, a terminal or in a comment of source
 * code. Removed are escape sequences of terminals, control characters, characters that show nothing
 * or show what follows otherwise (json/document/hidden.h, variation selectors, private use), and
 * joiners where no script needs them. Invalid UTF-8 becomes U+FFFD, every separator of lines a line
 * feed, every other blank a space; there is never more than one empty line, nor a long run of
 * blanks, so nothing is pushed out of sight. Cleaning a cleaned text changes nothing.
 */
#include "json/document/json.h"

struct buf;

enum {
	CLEAN_CHARS = 2000, /* of a cleaned text, with the mark of the cut */
	CLEAN_KEY_CHARS = 200, /* of a member's name that had to be changed */
};

enum clean_mode {
	CLEAN_TEXT, /* several lines */
	CLEAN_LINE, /* one line: line feeds become spaces */
	CLEAN_COMMENT, /* several lines that don't end a comment: a star before a slash is parted */
	/* One line in which nothing is removed: characters that the other modes remove stand as
	 * \u{200b}, line feeds as \n. For differences and excerpts. */
	CLEAN_REVEAL,
};

/* Appends at most `chars` characters; what is longer ends in " … [cut]". ERR_TOO_LARGE, ERR_LIMIT:
 * of the buffer. O(text.n). */
int clean_text(struct buf *to, struct str text, enum clean_mode mode, size_t chars,
	       struct err *e) MUST_USE;

/* Whether a reader of the text as it is would not see all of it, or see it otherwise. */
bool clean_changes(struct str text);

/* The character at *at, which moves behind it; U+FFFD where there is none. */
uint32_t clean_char(struct str s, size_t *at);

/* A character of no width that CLEAN_TEXT never lets through, wherever it stands. */
bool clean_hides(uint32_t c);

/* Appends a JSON text of v, usually a tool's definition, in which every string is cleaned, member
 * names too, at most CLEAN_CHARS of each. A name that had to be changed is revealed, and followed
 * by a digest so that no two become one. It is for showing: what is sent to the server is held
 * against the definition as it came. Recurses as deep as the document (json.h). */
int clean_json(struct buf *to, const struct json_val *v, enum clean_mode mode,
	       struct err *e) MUST_USE;
