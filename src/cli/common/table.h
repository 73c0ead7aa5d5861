#pragma once
/*
 * A listing for people. Every column is as wide as its widest cell, so the table is printed when
 * all rows are known. Cells are added row by row, from left to right.
 */
#include "json/document/json.h"

struct table;

enum { TABLE_COLUMNS_MAX = 12 };

/* A heading that begins with '>' aligns its column to the right. NULL with ERR_LIMIT. */
struct table *table_new(const char *const *headings, size_t n, struct err *e) MUST_USE;
void table_free(struct table *t); /* NULL-safe */
AUTO_DEFINE(table_free, struct table)

#define TABLE(e, ...)                                                                              \
	table_new((const char *const[]){ __VA_ARGS__ },                                            \
		  ARRAY_LEN(((const char *const[]){ __VA_ARGS__ })), e)

/* A text, escaped as by safe_line(); "-" if it is empty. */
void table_str(struct table *t, struct str s);
/* The same, cut at `max` bytes and "…". */
void table_short(struct table *t, struct str s, size_t max);
/* A number of `digits` decimals, divided by `unit`; "-" if v is no number. */
void table_number(struct table *t, const struct json_val *v, double unit, int digits);
void table_cell(struct table *t, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Prints the headings and all rows to standard output. */
void table_print(struct table *t);
