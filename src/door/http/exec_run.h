#pragma once
/*
 * Programs that are run for a request. What they print is either kept up to a budget and answered at
 * their end, or sent as it comes: whoever reads too slowly holds the program, and whoever goes away
 * ends it.
 */
#include "door/http/common.h"

enum { EXEC_TIMEOUT_MAX = 86400, EXEC_TIMEOUT_DEFAULT = 30 };

/* What a request says; borrowed until the call ends. */
struct exec_wish {
	struct str sandbox, command;
	bool has_args;
	struct field_strs args; /* with them command is a program, without a line for the shell */
	const struct env_var *env;
	size_t n_env;
	struct str cwd;
	uint32_t timeout_s;
	struct str input;
	bool stdin_open; /* more of it comes */
	struct exec_terminal terminal; /* columns 0: none */
};

struct exec_end_view {
	int exit_code;
	double wall_ms;
	/* It never ran, was killed at its timeout or for a limit, or its sandbox ended; or STR_NONE. The code
	 * is that of a failure of the call, if it is one. */
	struct str error, code;
	struct str dimension; /* which limit it was for, or STR_NONE */
};

/* err: NULL, or why there is no result. What the view names is borrowed from it. */
void exec_end_of(const struct exec_result *result, const struct err *err,
		 struct exec_end_view *ret);

/* How output reaches the client. */
struct exec_voice {
	void (*chunk)(struct call *c, enum exec_stream stream, struct str bytes);
	void (*end)(struct call *c, const struct exec_end_view *end);
	/* A command that its timeout ended is a good end of the call, and no failure behind it. */
	bool timeout_is_end;
};

/* Refuses a timeout that is too large, having failed the call; true if it did. */
bool exec_refuses(struct call *c, const struct exec_wish *w);

/* What the engine is to run, in the call's arena, but for timeout and input. */
int exec_spec_of(struct call *c, const struct exec_wish *w, struct exec_spec *ret,
		 struct err *e) MUST_USE;

/* As one would type it; in the call's arena, and cut where it is long. */
struct str exec_command_of(struct call *c, const struct exec_wish *w);

/* Both end the call. */
void exec_collect(struct call *c, const struct exec_wish *w, uint32_t max_output);
void exec_speak(struct call *c, const struct exec_wish *w, const struct exec_voice *voice);
extern const struct field_table exec_answer_table;

/* ---- with input as it comes: on a WebSocket (ask_socket_start()) ------------------------------- */

struct exec_run;

/* The run ends the call; NULL with *e where it did not begin, and the call is still to be ended. */
struct exec_run *exec_run_start(struct call *c, const struct exec_wish *w,
				const struct exec_voice *voice, struct err *e) MUST_USE;
/* To be resized and signalled; NULL once nobody should. */
struct exec *exec_run_exec(const struct exec_run *r);
/* Where the program reads slowly, the client has to wait. */
void exec_run_input(struct exec_run *r, struct str bytes);
void exec_run_room(struct exec_run *r); /* on_room */
/* Ends the program, and then the call with e. */
void exec_run_refuse(struct exec_run *r, const struct err *e);
