#pragma once
/* The hub's side of modules/code/inlet.h, without I/O. What a program says is hostile. */
#include "base/arena.h"
#include "base/buf.h"
#include "modules/code/inlet.h"

enum inlet_do { INLET_LIST, INLET_INFO, INLET_CALL, INLET_DOES };

struct inlet_request {
	enum inlet_do what;
	struct str module, tool; /* STR_NONE: not said */
	struct str arguments; /* JSON, an object */
	bool text;
};

/* 1: in is one request, whose texts are in a; 0: there is more to come; -1: it is none, or larger
 * than may be. */
int inlet_read(struct str in, struct arena *a, struct inlet_request *ret, struct err *e) MUST_USE;

/* Appends an answer. */
int inlet_say(struct buf *to, enum inlet_answer how, struct str text, struct err *e) MUST_USE;

/* What MCP's tools/call answered, for people and shells: the structured content, else its texts,
 * else all of its content. */
int inlet_say_text(struct buf *to, struct str result, struct err *e) MUST_USE;
