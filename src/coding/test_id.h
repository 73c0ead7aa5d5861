#pragma once
/*
 * The name of a test, in one type for parsers, for reruns and for clients. The scope is what a
 * runner is given first: a package of Go, a file of pytest or node, a binary of cargo, a project of
 * meson; it may be empty. The name is the test's own within its scope. An empty name means all of
 * the scope: it did not build, or failed outside of a test.
 */
#include "base/buf.h"

struct test_id {
	struct str scope, name;
};

enum { TEST_ID_MAX = 1024 }; /* bytes of scope and name together */

bool test_id_eq(struct test_id a, struct test_id b);

/* Appends "scope::name"; without a scope the name, behind "::" where the name contains that. */
int test_id_text(struct test_id id, struct buf *to, struct err *e) MUST_USE;

/* The inverse for a scope without "::"; borrows from the text. */
struct test_id test_id_parse(struct str text);
