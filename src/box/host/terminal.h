#pragma once
/*
 * Terminals in sandboxes. The hub opens both ends by itself, in a directory of the kernel's that the sandbox's
 * init has shown it: a master that init had opened would be shared with it, and whoever shares it can have
 * reading it wait.
 */
#include "box/host/internal.h"

struct terminal_call;

/* master does not block; both are the callback's. err: there are none, and both are -1. */
typedef void terminal_cb(void *arg, int master, int slave, const struct err *err);

/* Later, once, unless it is cancelled. */
struct terminal_call *terminal_open_start(struct sandbox *sb, const struct exec_terminal *t,
					  terminal_cb *on_done, void *arg, struct err *e) MUST_USE;
void terminal_open_cancel(struct terminal_call *c); /* NULL-safe */

/* ERR_INVALID for a size that no terminal has. */
int terminal_check(unsigned columns, unsigned rows, struct err *e) MUST_USE;

/* The new size; what runs in it is told by SIGWINCH. */
int terminal_resize(int master, unsigned columns, unsigned rows, struct err *e) MUST_USE;

/* The same of one that is still waited for. */
void terminal_open_resize(struct terminal_call *c, unsigned columns, unsigned rows);

/* The character that ends input for who reads lines; 0: there is none, bytes are read as they come. master -1: of one
 * that nobody has used yet. */
char terminal_end_of_file(int master);
