#pragma once
/*
 * The command line: `holt VERB [OPTION...] [OPERAND...]`. A verb is a file, and a const row in
 * verbs.c; the dispatcher parses its options, prints its help and runs it. A verb may have
 * subcommands (`words`), each a verb itself (`holt mcp call`): a file, and a row in that verb's
 * table.
 */
#include <unistd.h>

#include "base/err.h"
#include "cli/common/option.h"

struct field_table;
struct op_hooks;

/* Settings of the whole program, from main(). */
struct cli {
	const struct op_hooks *hooks; /* of every call (call/call.h); NULL: none */
};

/* First member of every verb's options. */
struct verb_options {
	bool help;
};

#define HELP_ROW(S)                                                                                \
	OPTION(S, common.help, OPTION_FLAG, "help", .letter = 'h', .doc = "Print this help.")

/* The table of verbs with --help alone; their size is that of struct verb_options. */
extern const struct option_table verb_bare;

/* For verbs that print tables: a member uint32_t output. */
enum output_form { OUTPUT_DEFAULT, OUTPUT_TABLE, OUTPUT_JSON };

#define OUTPUT_ROW(S)                                                                              \
	OPTION(S, output, OPTION_CHOICE, "output", .letter = 'o', .arg = "table|json",             \
	       .doc = "Output format: a table, or one JSON value.")

/* The options and table of verbs with --output alone. */
struct verb_output {
	struct verb_options common;
	uint32_t output;
};
extern const struct option_table verb_output;

/* For verbs that make sandboxes: a member uint32_t user. */
enum { USER_DEFAULT, USER_USER, USER_ROOT };

#define USER_ROW(S)                                                                                \
	OPTION(S, user, OPTION_CHOICE, "user", .letter = 'u', .arg = "user|root",                  \
	       .same = "1000|0", .member = "user",                                                 \
	       .doc = "User of its programs: uid 1000, the default, or root in a user namespace.")

/* Likewise a member uint32_t no_network: 1 where that is said. */
#define NO_NETWORK_ROW(S)                                                                          \
	OPTION(S, no_network, OPTION_CHOICE, "network", .arg = "none",                             \
	       .doc = "Grant no network, even if the template asks for some.")

/* hosts: how many --allow names. */
static inline int no_network_check(uint32_t no_network, size_t hosts, struct err *e)
{
	return no_network && hosts
		     ? err_set(e, ERR_INVALID, "--network none allows nothing: leave out --allow")
		     : 0;
}

/* For verbs with --memory, where the sandbox's memory is limited by "rlimit". */
#define MEMORY_NOTE                                                                                \
	"holt: without control groups --memory holds for each process, not for all of them "       \
	"together; holt doctor says how to get them\n"

/* Verbs with --cpus warn of more than there are. A file for another machine may have that. */
static inline void cpus_check(uint32_t milli)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	if (n > 0 && milli > (uint64_t)n * 1000)
		fprintf(stderr, "holt: --cpus %g: this machine has %ld processors\n",
			milli / 1000.0, n);
}

struct verb;
struct ask;

struct verb_input {
	const struct cli *cli;
	const struct verb *verb;
	const void *options; /* the verb's struct */
	char **operands;
	int n_operands;
	/* After "--" in a mixed table, or the program; NULL-terminated. NULL: none. */
	char **rest;
};

struct verb {
	const char *name; /* a word has that of its verb before its own: "mcp call" */
	const char *alias; /* another name that people try, or NULL */
	const char *usage; /* behind the name */
	const char *doc; /* one line */
	const char *more; /* paragraphs below the usage, or NULL */
	const char *page; /* the manual page, "holt-run"; NULL: that of a word's verb, or "holt" */
	const struct option_table *options;
	const void *defaults; /* of the options' struct; NULL: zeros */
	size_t size; /* of that struct */
	int min_operands, max_operands; /* max 0: as many as min */
	int usage_exit; /* status when the command line is wrong; 0: 2 */
	const struct verb *const *words; /* NULL-terminated; may be NULL */
	const char *(*operand)(size_t i); /* likewise option_row.value, of the first operand */
	const struct ask *ask; /* of hub_ask_run() (cli/link/ask.h) */
	int (*check)(const struct verb_input *in, struct err *e); /* ERR_INVALID: wrong usage */
	/* Gives the exit status; -1: fail() gives it. NULL: a word is wanted. */
	int (*run)(const struct verb_input *in, struct err *e);
	int (*fail)(const struct err *e); /* prints the failure; NULL: cli_fail() */
};

extern const struct verb run_verb;
extern const struct verb build_verb;
extern const struct verb images_verb;
extern const struct verb up_verb;
extern const struct verb ls_verb;
extern const struct verb inspect_verb;
extern const struct verb ps_verb;
extern const struct verb top_verb;
extern const struct verb events_verb;
extern const struct verb exec_verb;
extern const struct verb execs_verb;
extern const struct verb logs_verb;
extern const struct verb attach_verb;
extern const struct verb wait_verb;
extern const struct verb kill_verb;
extern const struct verb fs_verb;
extern const struct verb cp_verb;
extern const struct verb fork_verb;
extern const struct verb pause_verb;
extern const struct verb resume_verb;
extern const struct verb stop_verb, forward_verb, preview_verb, net_verb;
extern const struct verb down_verb;
extern const struct verb js_verb, web_verb, conversations_verb, inbox_verb;
extern const struct verb ws_verb, snapshot_verb, secret_verb, audit_verb;
extern const struct verb diff_verb;
extern const struct verb agent_verb, mcp_verb;
extern const struct verb serve_verb, hub_verb;
extern const struct verb auth_verb;
extern const struct verb config_verb, policy_verb, why_verb, shell_verb, init_verb;
extern const struct verb doctor_verb, self_check_verb;
extern const struct verb version_verb;
extern const struct verb help_verb;
extern const struct verb completion_verb;

/* `holt mcp` with a subcommand is a client. */
extern const struct verb *const mcp_words[];

extern const struct verb *const verbs[];
extern const size_t verbs_n;

/* The groups of verbs[] in their order, as `holt help` shows them; the last has no heading. */
extern const struct verb_group {
	const char *heading;
	size_t n;
} verb_groups[];

/* Prints the error and its remedy on stderr. Returns the error's exit status. */
int cli_fail(const struct err *e);

/* The same, and prints the error on standard output: {"error":{"code","cause","remediation",
 * "failure","retryable","pointer"}}. */
int cli_fail_json(const struct err *e);

/* Prints what is wrong with the command line, and how to get help. Returns the verb's exit
 * status for it. */
int cli_wrong_usage(const struct verb *v, const struct err *e);

/* Prints an object of the table as JSON, and a line break. */
int cli_print_object(const struct field_table *t, const void *object, struct err *e) MUST_USE;

/* Flushes standard output. 0 if everything is written; 128 + SIGPIPE if nobody reads any more,
 * with *e unchanged; else the exit status with *e. */
int cli_flush(struct err *e);

void cli_help(const struct verb *v, FILE *out);
const char *cli_page(const struct verb *v);
void cli_help_all(FILE *out);

/* NULL with ERR_INVALID, which names the nearest. */
const struct verb *cli_find(const char *name, struct err *e) MUST_USE;
const struct verb *cli_find_word(const struct verb *v, const char *word, struct err *e) MUST_USE;

/* Words of Docker and Podman (habits.c). Fails for a verb that is none with what does the same,
 * else with the nearest verb, which may be NULL. */
int habits_fail(const char *word, const char *nearest, struct err *e);
/* The rows of a verb's options, and behind them options that other programs have; for the caller to
 * free. NULL: out of memory. */
struct option_row *habits_rows(const struct verb *v, size_t *ret_n) MUST_USE;

/* The whole program. */
int cli_main(const struct cli *cli, int argc, char **argv);
