/* `holt web`: a link by which a browser logs in to the page of the hub. */
#include <stdio.h>

#include "cli/link/ask.h"

static const struct ask_noun links = { .path = "/session/links" };

static int web_show(const struct json_val *v, const char *name, struct err *e)
{
	struct str url = json_str(json_get(v, "url"));

	if (!url.n)
		return err_set(
			e, ERR_INVALID,
			"the hub listens at no address that a browser can reach: "
			"start holt serve, which takes it over with its sandboxes; one that "
			"holt serve started has to be ended before (holt hub stop), and keeps "
			"the files of its sandboxes");
	printf("%.*s\n", STR_ARG(url));
	return 0;
}

const struct verb web_verb = {
	.name = "web",
	.usage = "",
	.doc = "Print a link that opens the web page of the hub, logged in.",
	.more = "The browser acts for whoever runs this. It is logged in for seven days, or until\n"
		"it was not used for twelve hours. Needs a holt serve that listens on TCP.",
	.page = "holt-auth",
	ASK(verb_bare, .of = &links, .method = "POST", .show = web_show,
	    .said = "the link logs one browser in, once, within 10 minutes"),
};
