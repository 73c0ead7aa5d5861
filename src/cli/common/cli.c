#include "cli/common/home.h"
#include "cli/common/safe.h"
#include "cli/common/verb.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio_ext.h>
#include <string.h>

#include "base/failure.h"
#include "json/field/field.h"

/* Holt's own failure: differs from every exit status that is passed on from a command. */
enum { EXIT_HOLT = 125, FAILURE_MAX = 16 << 10, OBJECT_MAX = 1 << 20 };

/* Remedies in place of those of the table of failures, which are for agents or other doors. */
static const char *const helps[ERR_CODES] = {
	[ERR_COMMAND_NOT_FOUND] =
		"Check the program's name, and that the template has it: holt run --image NAME "
		"takes another one. A line for the shell is run with sh -c 'LINE'.",
	[ERR_TEMPLATE_NOT_FOUND] =
		"holt images lists the templates beside host; holt images pull NAME gets one from "
		"a registry, holt images import one from a file, and holt build makes one.",
	[ERR_SANDBOX_NOT_FOUND] =
		"Check the name: holt ls lists the sandboxes, holt images the "
		"templates, holt snapshot the snapshots, holt ws the workspaces, holt secret the "
		"secrets, holt fs ls the files of a sandbox.",
	[ERR_PATH_NOT_FOUND] = "Check the path: it is one of this machine, unless a sandbox's name "
			       "and a colon are in front of it.",
	[ERR_PATH_DENIED] = "Name a path that you may use, or inside a sandbox its user; HOLT_HOME "
			    "and XDG_RUNTIME_DIR say where Holt's own folders are.",
	[ERR_NOT_A_FILE] = "Check the path inside the sandbox with holt fs stat.",
	[ERR_TOO_LARGE] = "Do it in parts, or with holt cp, which has no bound.",
	[ERR_CONFLICT] = "Take another name or port, or wait until what the cause names has ended; "
			 "a paused or stopped sandbox continues with holt resume.",
	[ERR_DISK_FULL] = "Remove files in the sandbox (holt fs rm), or make one with more --disk.",
	[ERR_PIDS_FULL] =
		"End programs in the sandbox (holt ps lists them), or make one with more --pids.",
	[ERR_MEMORY_FULL] =
		"End programs or remove files in the sandbox, or make one with more --memory.",
	[ERR_GUEST] =
		"Its processes and files are gone; remove it with holt down, and make a new one.",
};

/* Here the disk may be named. */
static const char *help_for_full(bool images)
{
	static char text[PATH_MAX + 256];
	char home[PATH_MAX];
	struct err ignored;

	if (home_where("", home, &ignored) < 0)
		return err_info(ERR_STORE_FULL)->remediation;
	home[strlen(home) - 1] = '\0';
	snprintf(text, sizeof(text),
		 "Free space on the host's disk that holds Holt's data folder, %s, %s, then try "
		 "again; running sandboxes are not affected.",
		 home,
		 images ? "for example with holt images prune and holt images rm"
			: "or what the cause names");
	return text;
}

static const char *help_for(enum err_code code)
{
	const char *help = code < ERR_CODES ? helps[code] : NULL;

	if (code == ERR_STORE_FULL || code == ERR_IMAGE_DISK)
		return help_for_full(code == ERR_IMAGE_DISK);
	return help ? help : err_info(code)->remediation;
}

int cli_fail(const struct err *e)
{
	fputs("holt: ", stderr);
	safe_puts(stderr, str_of(e->msg)); /* names out of archives, words of servers */
	if (e->code != ERR_INVALID)
		fprintf(stderr, "      %s\n", help_for(e->code));
	return err_info(e->code)->exit;
}

struct failure {
	struct str code, cause, remediation, pointer;
	enum err_failure failure;
	bool retryable;
};
static const struct field failure_fields[] = {
	FIELD(struct failure, code, .flags = FIELD_REQUIRED, .doc = "Error code, for programs."),
	FIELD(struct failure, cause, .flags = FIELD_REQUIRED,
	      .doc = "What went wrong in this case."),
	FIELD(struct failure, remediation, .flags = FIELD_REQUIRED,
	      .doc = "What can be done about it."),
	FIELD_ENUM(struct failure, failure, err_failure_names, .flags = FIELD_REQUIRED,
		   .doc = "Class of the error, by the reaction that helps."),
	FIELD(struct failure, retryable, .flags = FIELD_REQUIRED,
	      .doc = "Whether trying again can help."),
	FIELD(struct failure, pointer,
	      .doc = "JSON pointer to the wrong value in the given document."),
};
static const struct field_table failure_table = FIELD_TABLE(struct failure, failure_fields);

static void cli_print_failure(const struct err *e)
{
	const struct err_info *info = err_info(e->code);
	const struct failure f = { .code = str_of(info->name),
				   .cause = str_of(e->msg),
				   .remediation = str_of(help_for(e->code)),
				   .pointer = *e->pointer ? str_of(e->pointer) : STR_NONE,
				   .failure = info->failure,
				   .retryable = info->retryable };
	struct err ignored = ERR_INIT;
	autofree char *text = field_encode_text(&failure_table, &f, FAILURE_MAX, &ignored);

	if (text)
		printf("{\"error\":%s}\n", text);
}

int cli_fail_json(const struct err *e)
{
	cli_print_failure(e);
	return cli_fail(e);
}

int cli_print_object(const struct field_table *t, const void *object, struct err *e)
{
	autofree char *text = field_encode_text(t, object, OBJECT_MAX, e);

	if (text)
		puts(text);
	return text ? 0 : -1;
}

int cli_flush(struct err *e)
{
	struct pollfd p = { .fd = STDOUT_FILENO, .events = POLLOUT };
	int failed = fflush(stdout) != 0 ? errno : 0;

	if (!failed && !ferror(stdout))
		return 0;
	/* once */
	__fpurge(stdout);
	clearerr(stdout);
	if (poll(&p, 1, 0) > 0 && (p.revents & POLLERR)) /* nobody reads it */
		return 128 + SIGPIPE;
	if (failed)
		err_sys(e, failed, "standard output");
	else
		err_set(e, ERR_IO, "standard output: could not write all output");
	return EXIT_HOLT;
}

const char *cli_page(const struct verb *v)
{
	const struct str verb = { v->name, strcspn(v->name, " ") };

	for (size_t i = 0; !v->page && i < verbs_n; i++) {
		if (str_is(verb, verbs[i]->name))
			return verbs[i]->page ? verbs[i]->page : "holt";
	}
	return v->page ? v->page : "holt";
}

void cli_help(const struct verb *v, FILE *out)
{
	fprintf(out, "Usage: holt %s%s%s\n\n%s\n", v->name, *v->usage ? " " : "", v->usage, v->doc);
	if (v->more)
		fprintf(out, "\n%s\n", v->more);
	if (v->words) {
		fprintf(out, "\nSubcommands:\n");
		for (const struct verb *const *w = v->words; *w; w++)
			fprintf(out, "  %-15s %s\n", (*w)->name, (*w)->doc);
	}
	if (v->alias)
		fprintf(out, "\nholt %s is the same.\n", v->alias);
	fprintf(out, "\nOptions:\n");
	option_help(v->options, out);
	fprintf(out, "\nMore: man %s\n", cli_page(v));
}

void cli_help_all(FILE *out)
{
	const struct verb *const *v = verbs;

	fprintf(out, "Usage: holt VERB [OPTION...] [ARGUMENT...]\n\n"
		     "Safe computers for AI agents, on your own machine.\n");
	for (const struct verb_group *g = verb_groups; g->heading; g++) {
		fprintf(out, "\n%s:\n", g->heading);
		for (size_t i = 0; i < g->n; i++, v++)
			fprintf(out, "  %-14s%s\n", (*v)->name, (*v)->doc);
	}
	fprintf(out, "\n'holt help VERB' explains a verb.\n");
}

/* For `holt` alone: words that a person who has just installed it can type next. */
static void cli_start_here(FILE *out)
{
	fputs("Holt runs programs that nobody trusts in sandboxes on this machine.\n\n"
	      "Start here:\n"
	      "  holt run -it bash      a shell in a sandbox, which ends with it\n"
	      "  holt up -n box         a sandbox that stays, for holt exec -it box bash\n"
	      "  holt doctor            whether sandboxes work here, and what helps\n"
	      "  man holt-mcp           sandboxes as the tools of an agent\n\n"
	      "'holt help' lists all verbs, 'holt help VERB' explains one.\n",
	      out);
}

static const char *verb_name(const void *of, size_t i)
{
	return verbs[i]->name;
}

const struct verb *cli_find(const char *name, struct err *e)
{
	for (size_t i = 0; i < verbs_n; i++) {
		if (strcmp(verbs[i]->name, name) == 0 ||
		    (verbs[i]->alias && strcmp(verbs[i]->alias, name) == 0))
			return verbs[i];
	}
	habits_fail(name, option_nearest(name, verb_name, NULL, verbs_n), e);
	return NULL;
}

static const char *own_name(const struct verb *word)
{
	return strrchr(word->name, ' ') + 1;
}

static const char *word_name(const void *of, size_t i)
{
	const struct verb *const *words = of;

	return own_name(words[i]);
}

const struct verb *cli_find_word(const struct verb *v, const char *word, struct err *e)
{
	const char *meant;
	size_t n = 0;

	for (; v->words && v->words[n]; n++) {
		const char *alias = v->words[n]->alias;

		if (strcmp(own_name(v->words[n]), word) == 0 ||
		    (alias && strcmp(strrchr(alias, ' ') + 1, word) == 0))
			return v->words[n];
	}
	meant = option_nearest(word, word_name, v->words, n);
	if (meant)
		err_set(e, ERR_INVALID, "there is no '%s %.40s'; did you mean '%s %s'?", v->name,
			word, v->name, meant);
	else
		err_set(e, ERR_INVALID,
			"there is no '%s %.40s'; 'holt help %s' lists what there is", v->name, word,
			v->name);
	return NULL;
}

int cli_wrong_usage(const struct verb *v, const struct err *e)
{
	fprintf(stderr, "holt %s: %s\nTry 'holt help %s'.\n", v->name, e->msg, v->name);
	return v->usage_exit ? v->usage_exit : 2;
}

static int check_operands(const struct verb *v, int n, char **operands, struct err *e)
{
	const int max = v->max_operands ? v->max_operands : v->min_operands;
	bool of_sandbox = v->page && strcmp(v->page, "holt-sandbox") == 0 &&
			  strstr(v->usage, "NAME");

	if (n < v->min_operands)
		return err_set(e, ERR_INVALID, "an operand is missing: holt %s %s%s", v->name,
			       v->usage, of_sandbox ? "; holt ls lists sandboxes" : "");
	if (n > max)
		return err_set(e, ERR_INVALID, "too much: '%.40s'", operands[max]);
	return 0;
}

/* Words after "--" are kept apart if options may follow operands; so is a program. */
static char **split_rest(const struct verb *v, char **operands, int *n)
{
	const int program_at = v->options->program_at;

	if (!v->options->mixed)
		return NULL;
	for (int i = 0; i < *n; i++) {
		bool dashes = strcmp(operands[i], "--") == 0;

		if (!dashes && (!program_at || i < program_at))
			continue;
		if (dashes)
			operands[i] = NULL;
		*n = i;
		return &operands[i + dashes];
	}
	return NULL;
}

static const struct option_row bare_rows[] = { HELP_ROW(struct { struct verb_options common; }) };
const struct option_table verb_bare = OPTION_TABLE(bare_rows, .mixed = true);

static const struct option_row output_rows[] = { OUTPUT_ROW(struct verb_output),
						 HELP_ROW(struct verb_output) };
const struct option_table verb_output = OPTION_TABLE(output_rows, .mixed = true);

static int run_word(const struct cli *cli, const struct verb *v, int argc, char **argv);

/* --json before what is wrong: its reader is a program. */
static bool wants_json(const struct verb *v, const void *options)
{
	for (size_t i = 0; i < v->options->n; i++) {
		const struct option_row *o = &v->options->rows[i];

		if (o->kind == OPTION_FLAG && strcmp(o->name, "json") == 0)
			return *(const bool *)((const char *)options + o->at);
	}
	return false;
}

static int verb_fail(const struct verb *v, const struct err *e)
{
	return v->fail ? v->fail(e) : cli_fail(e);
}

/* argv[0] is the verb. */
static int run_verb_with(const struct cli *cli, const struct verb *v, int argc, char **argv)
{
	struct option_table known = *v->options;
	autofree struct option_row *rows = habits_rows(v, &known.n);
	autofree void *options = calloc(1, v->size);
	struct err e = ERR_INIT;
	struct verb_input in;
	char **rest;
	int at, n, status;

	if (v->words && argc > 1 && argv[1][0] != '-')
		return run_word(cli, v, argc - 1, argv + 1);
	if (!options || !rows) {
		err_set(&e, ERR_LIMIT, "out of memory");
		return cli_fail(&e);
	}
	if (v->defaults)
		memcpy(options, v->defaults, v->size);
	known.rows = rows;
	at = option_parse(&known, argc, argv, options, &e);
	if (at < 0 && v->usage_exit && wants_json(v, options))
		cli_print_failure(&e);
	if (at < 0)
		return cli_wrong_usage(v, &e);
	if (((const struct verb_options *)options)->help) {
		cli_help(v, stdout);
		return 0;
	}
	n = argc - at;
	rest = split_rest(v, argv + at, &n);
	if (check_operands(v, n, argv + at, &e) < 0)
		return cli_wrong_usage(v, &e);
	if (!v->run) {
		cli_help(v, stderr);
		return 2;
	}
	in = (struct verb_input){
		.cli = cli,
		.verb = v,
		.options = options,
		.operands = argv + at,
		.n_operands = n,
		.rest = rest,
	};
	if (v->check && v->check(&in, &e) < 0)
		return e.code == ERR_INVALID ? cli_wrong_usage(v, &e) : verb_fail(v, &e);
	status = v->run(&in, &e);
	return status < 0 ? verb_fail(v, &e) : status;
}

static int run_word(const struct cli *cli, const struct verb *v, int argc, char **argv)
{
	struct err e = ERR_INIT;
	const struct verb *word = cli_find_word(v, argv[0], &e);

	return word ? run_verb_with(cli, word, argc, argv) : cli_wrong_usage(v, &e);
}

/* A program may be started with standard descriptors closed. The next file it opens would then
 * take the place of one of them. */
static void fill_descriptors(void)
{
	for (int fd = 0; fd <= 2; fd++) {
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
			_exit(EXIT_HOLT);
	}
}

/* The spellings that people try first. */
static const struct {
	const char *option, *verb;
} spelled[] = {
	{ "--help", "help" },
	{ "-h", "help" },
	{ "--version", "version" },
	{ "-V", "version" },
};

int cli_main(const struct cli *cli, int argc, char **argv)
{
	struct err e = ERR_INIT;
	const struct verb *v;
	int status, lost;

	err_full_is(ERR_STORE_FULL);
	fill_descriptors();
	if (argc < 2) {
		cli_start_here(stderr);
		return EXIT_HOLT;
	}
	for (size_t i = 0; i < ARRAY_LEN(spelled); i++) {
		if (strcmp(argv[1], spelled[i].option) == 0)
			argv[1] = (char *)spelled[i].verb;
	}
	v = cli_find(argv[1], &e);
	if (!v)
		return cli_fail(&e);
	status = run_verb_with(cli, v, argc - 1, argv + 1);
	lost = cli_flush(&e);
	if (lost && e.code)
		cli_fail(&e);
	return lost ? lost : status;
}
