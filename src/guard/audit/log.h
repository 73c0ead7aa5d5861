#pragma once
/*
 * The log's files: `NNNNNN.jsonl` in one folder, of which the last is appended to. All programs of
 * a user share them: who appends holds a lock on the file `head`, which says where the log ends
 * ("file size seq hash"). A dead writer's torn line is cut, and what is missing told, by whoever
 * appends next. A file that is full ends in a signed line, and the chain goes on in the next.
 *
 * Behind that line `head` has a copy of it with the beginning of its SHA-256. Both are written at
 * once, in this order, so where that was done in part the copy is what was there before.
 */
#include "guard/audit/key.h"

struct audit_log;

struct audit_limits {
	uint64_t file_bytes; /* a file that has more is closed [0: 16 MiB] */
	unsigned files; /* that are kept [0: 64] */
	unsigned days; /* after which a file is removed [0: never] */
};

/* The contents of `head`. */
struct audit_head {
	unsigned file; /* 0: nothing that is whole */
	uint64_t size, seq;
	char hash[AUDIT_HASH];
	bool copied; /* a whole copy stands behind it, which may be older */
};
enum { AUDIT_HEAD_BYTES = 6 + 1 + 20 + 1 + 20 + 1 + 64 + 1 };
void audit_head_write(const struct audit_head *h, char to[AUDIT_HEAD_BYTES + 1]);
bool audit_head_read(struct str text, struct audit_head *ret);
/* The line or the copy, whichever is whole; fd: of the file. -1 with errno. */
int audit_head_load(int folder, int fd, struct audit_head *ret) MUST_USE;

enum { AUDIT_FILE_NAME = 16 };
void audit_file_name(unsigned file, char ret[AUDIT_FILE_NAME]);
/* 0: the name is none of a file of the log. */
unsigned audit_file_of(const char *name);

/* Makes the folder (0700) and the key where they are missing. */
struct audit_log *audit_log_open(const char *folder, const struct audit_limits *l,
				 struct err *e) MUST_USE;
void audit_log_close(struct audit_log *l); /* NULL-safe */
AUTO_DEFINE(audit_log_close, struct audit_log)
/* Whether it opens, with its newest file. Where the folder is missing, nothing is made. */
int audit_log_check(const char *folder, struct err *e) MUST_USE;
void audit_log_limit(struct audit_log *l, const struct audit_limits *limits);

/* Appends one record, whose seq and prev are filled in; `line` is what was written. It is in the
 * kernel's hands then, and outlives the process. What is appended is all there, or nothing of
 * it. */
int audit_log_append(struct audit_log *l, struct audit_record *r, bool sign,
		     struct audit_line *line, struct err *e) MUST_USE;

/* Makes sure that the disk has room for what is under way. */
int audit_log_reserve(struct audit_log *l, struct err *e) MUST_USE;

/* Bytes of that room that are left. */
uint64_t audit_log_room(const struct audit_log *l);

/* A descriptor to sync what was appended; the caller closes it. */
int audit_log_dup(const struct audit_log *l, struct err *e) MUST_USE;

int audit_log_folder(const struct audit_log *l);
const struct audit_key *audit_log_key(const struct audit_log *l);
