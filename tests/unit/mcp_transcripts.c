/*
 * Plays the transcripts of tests/unit/transcripts against the fixture, word for word:
 *
 *	# a comment
 *	> TEXT			the client says it
 *	< TEXT			the next thing that the server says, and nothing stands before it
 *	! end I			call I of the tool hold ends
 *	! progress I V T TEXT	call I of hold tells its progress: V of T
 *	! clock MS		time passes
 *	! cancels N		so many calls have been cancelled so far
 *	! open N		so many calls are open
 *	! full			what follows is said to a new server, of mcp_full.h
 *	! changed N		lists have changed: 1 tools, 2 resources, 4 prompts
 *	! updated URI		a resource has
 *	! drain			the server goes down
 *
 * With TRANSCRIPT_PRINT set it prints what the server says instead, for a new transcript.
 */
#include <dirent.h>
#include <stdlib.h>

#include "mcp_fixture.h"
#include "mcp_full.h"
#include "test.h"

static const char *folder;

struct play {
	struct fixture f;
	unsigned said; /* of f.sent: compared */
	unsigned line;
	const char *name;
	bool print;
};

static void wrong(const struct play *p, const char *what, const char *text)
{
	fail_msg("%s:%u: %s%s", p->name, p->line, what, text);
}

static void expect_silence(struct play *p)
{
	for (; p->print && p->said < p->f.sent_n; p->said++)
		printf("< %s\n", p->f.sent[p->said]);
	if (p->said < p->f.sent_n)
		wrong(p, "before this it said ", p->f.sent[p->said]);
}

static void expect(struct play *p, const char *text)
{
	if (p->print)
		return;
	if (p->said == p->f.sent_n)
		wrong(p, "it said nothing, not ", text);
	if (strcmp(p->f.sent[p->said], text) != 0)
		wrong(p, "it said ", p->f.sent[p->said]);
	p->said++;
}

static void start(struct play *p, bool full)
{
	struct mcp_server_options o = { .page = 3 };

	if (full)
		full_offer(&o);
	assert_true(fixture_init(&p->f, &o));
}

static void start_again(struct play *p)
{
	fixture_fini(&p->f);
	start(p, true);
	p->said = 0;
}

static void act(struct play *p, const char *action)
{
	char text[128] = "";
	unsigned i;
	double v, t;

	if (sscanf(action, "end %u", &i) == 1)
		fixture_end(&p->f, i);
	else if (sscanf(action, "progress %u %lf %lf %127[^\n]", &i, &v, &t, text) >= 3)
		mcp_call_progress(p->f.held[i], v, t, *text ? text : NULL);
	else if (sscanf(action, "clock %u", &i) == 1)
		p->f.now_ms += i;
	else if (sscanf(action, "cancels %u", &i) == 1)
		assert_int_equal(p->f.cancels, i);
	else if (sscanf(action, "open %u", &i) == 1)
		assert_int_equal(mcp_session_open(p->f.session), i);
	else if (sscanf(action, "changed %u", &i) == 1)
		mcp_server_changed(p->f.server, i);
	else if (sscanf(action, "updated %127s", text) == 1)
		mcp_server_updated(p->f.server, str_of(text));
	else if (strcmp(action, "drain") == 0)
		mcp_session_drain(p->f.session);
	else if (strcmp(action, "full") == 0)
		start_again(p);
	else
		wrong(p, "unknown action ", action);
}

static void play_line(struct play *p, const char *line)
{
	p->line++;
	if (p->print && *line != '<')
		expect_silence(p);
	if (p->print && *line != '<')
		puts(line);
	if (*line == '\0' || *line == '#')
		return;
	if (*line == '<') {
		expect(p, line + 2);
		return;
	}
	expect_silence(p);
	if (*line == '>')
		fixture_say(&p->f, line + 2);
	else if (*line == '!')
		act(p, line + 2);
	else
		wrong(p, "unknown line ", line);
}

static void play_file(const char *name)
{
	struct play p = { .name = name, .print = getenv("TRANSCRIPT_PRINT") != NULL };
	autofree char *line = NULL;
	size_t room = 0;
	ssize_t n;
	char path[512];
	FILE *in;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	in = fopen(path, "re");
	assert_non_null(in);
	start(&p, false);
	while ((n = getline(&line, &room, in)) > 0) {
		line[n - (line[n - 1] == '\n')] = '\0';
		play_line(&p, line);
	}
	expect_silence(&p);
	fixture_fini(&p.f);
	fclose(in);
}

static void plays_all(void **state)
{
	DIR *d = opendir(folder);
	struct dirent *x;
	int played = 0;

	assert_non_null(d);
	while ((x = readdir(d))) {
		if (!strstr(x->d_name, ".txt"))
			continue;
		play_file(x->d_name);
		played++;
	}
	closedir(d);
	assert_true(played > 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(plays_all) };

	if (argc != 2)
		return 2;
	folder = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
