#pragma once
/* Reads the audit log's files, which may have been damaged or made by anybody. */
#include "guard/audit/key.h"

struct audit_reader;

/* Reads lines from an offset on; the descriptor is borrowed, and must allow pread(). */
struct audit_reader *audit_reader_new(int fd, uint64_t from, struct err *e) MUST_USE;
void audit_reader_free(struct audit_reader *r); /* NULL-safe */
AUTO_DEFINE(audit_reader_free, struct audit_reader)

/* 1: a whole line, without its newline, and its record, both valid until the next call. 0: no whole
 * line is there (yet): it may be called again. -1: a line is no record (ERR_INVALID), or the file
 * can't be read. */
int audit_reader_next(struct audit_reader *r, struct str *ret_line, struct audit_record *ret,
		      struct err *e) MUST_USE;
/* Offset of the next line. */
uint64_t audit_reader_at(const struct audit_reader *r);

/* How many files the log has, and their numbers, ascending. *ret is owned. */
ssize_t audit_files(int folder, unsigned **ret, struct err *e) MUST_USE;

/* The first record of a file; its texts live as long as the document. */
struct json_doc *audit_first(int folder, unsigned file, struct arena *a, struct audit_record *ret,
			     struct err *e) MUST_USE;
