/* `holt web`: a link by which a browser logs in to the page of the hub. */
#include <stdio.h>

#include "cli/common/verb.h"
#include "cli/link/link.h"

static int web_link(struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(e);
	AUTO(json_free) struct json_doc *doc = NULL;
	struct str url;

	if (!l || hub_link_ask(l, "POST", "/session/links", STR_LIT("{}"), &doc, e) < 0)
		return -1;
	url = json_str(json_get(json_root(doc), "url"));
	if (!url.n)
		return err_set(
			e, ERR_INVALID,
			"the hub listens at no address that a browser can reach: "
			"start holt serve, which takes it over with its sandboxes; one that "
			"holt serve started has to be ended before (holt hub stop), and keeps "
			"the files of its sandboxes");
	printf("%.*s\n", STR_ARG(url));
	fputs("holt: the link logs one browser in, once, within 10 minutes\n", stderr);
	return 0;
}

static int web_run(const struct verb_input *in)
{
	struct err e = ERR_INIT;

	return web_link(&e) < 0 ? hub_link_fail(&e) : 0;
}

const struct verb web_verb = {
	.name = "web",
	.usage = "",
	.doc = "Print a link that opens the web page of the hub, logged in.",
	.more = "The browser acts for whoever runs this. It is logged in for seven days, or until\n"
		"it was not used for twelve hours. Needs a holt serve that listens on TCP.",
	.page = "holt-auth",
	.options = &verb_bare,
	.size = sizeof(struct verb_options),
	.run = web_run,
};
