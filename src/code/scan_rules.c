/*
 * What prompt injection says. A rule is a sequence of classes of words; the number is how many
 * words may stand between. What is common in honest descriptions ("use this before X", "overrides
 * the default", "ignore case") must not be enough for a rule.
 */
#include <assert.h>

#include "base/mem.h"
#include "code/scan_match.h"

#define IGNORE CLASS(8)
#define REPLACE CLASS(9)
#define PRIOR CLASS(10)
#define YOUR CLASS(11)
#define HARD CLASS(12)
#define SOFT CLASS(13)
#define SAFETY CLASS(14)
#define NEW CLASS(15)
#define YOU CLASS(16)
#define NOW CLASS(17)
#define ACT CLASS(18)
#define AS CLASS(19)
#define POWER CLASS(20)
#define TELL CLASS(21)
#define USER CLASS(22)
#define WITHOUT CLASS(23)
#define SECRETLY CLASS(24)
#define ASK CLASS(25)
#define CONSENT CLASS(26)
#define READ CLASS(27)
#define SECRET CLASS(28)
#define MUST CLASS(29)
#define BEFORE CLASS(30)
#define SEND CLASS(31)
#define TALK CLASS(32)
#define ALL CLASS(33)
#define PUT CLASS(34)
#define PARAM CLASS(35)
#define TOOL CLASS(36)
#define CALL CLASS(37)
#define OTHER CLASS(38)
#define INSTEAD CLASS(39)
#define BEHAVE CLASS(40)
#define WHEN CLASS(41)
#define OF CLASS(42)
#define TO CLASS(43)
#define KEEP CLASS(44)
#define KNOW CLASS(45)
#define ALREADY CLASS(46)
#define RUN CLASS(47)
#define SHELL CLASS(48)
#define DECODE CLASS(49)
#define FOLLOW CLASS(50)
#define CONTENTS CLASS(51)
#define MODEL CLASS(52)
#define FROM CLASS(53)
#define EVERY CLASS(54)
#define FINAL CLASS(55)
#define RECIPIENT CLASS(56)
#define CHANGE CLASS(57)
#define RESULT CLASS(58)
#define ABOVE CLASS(59)
#define RIGHT CLASS(60)
#define PRECEDENCE CLASS(61)
#define LONGER CLASS(62)
#define TREAT CLASS(63)
#define THIS CLASS(64)
#define SHOW CLASS(65)
#define LET CLASS(66)
#define AGREE CLASS(67)
#define BAD CLASS(68)
#define TRUST CLASS(69)
#define TASK CLASS(70)
#define HOME CLASS(71)
#define ENVIRON CLASS(72)
#define EVEN CLASS(73)
#define AI CLASS(74)
#define NOTE CLASS(75)
#define SYSTEM CLASS(76)
#define I CLASS(77)
#define KNOWLEDGE CLASS(78)
#define WARNING CLASS(79)
#define ITS CLASS(80)

const struct word_class scan_classes[] = {
	{ CLASS_NOT, "not dont never cannot cant mustnt shouldnt avoid no nor doesnt isnt wont" },
	{ CLASS_EVEN_NOT, "forget fail hesitate omit neglect" },
	{ IGNORE,
	  "ignore disregard forget discard dismiss neglect unlearn overlook aside ignoriere "
	  "vergiss missachte ignorez oubliez ignora olvida ignorar dimentica negeer" },
	{ REPLACE,
	  "override overrule bypass supersede circumvent skip replace evade violate disobey" },
	{ PRIOR,
	  "previous prior earlier above preceding existing former past all any other original "
	  "initial foregoing system these those current todas anteriores alle vorherigen "
	  "toutes tous precedentes tutte precedenti" },
	{ YOUR, "your" },
	{ HARD,
	  "instruction prompt directive guideline guardrail training programming brief direction "
	  "restriction safeguard anweisungen instrucciones instrucoes istruzioni consignes "
	  "instructies" },
	{ SOFT, "rule policy constraint command message context limit limitation filter "
		"safeguard task goal alignment" },
	{ SAFETY, "safety security ethical content moderation" },
	{ NEW, "new updated real actual true revised following" },
	{ YOU, "you your yourself youre" },
	{ NOW, "now henceforth" },
	{ ACT, "act behave pretend roleplay impersonate operate respond pose" },
	{ AS, "as like be" },
	{ POWER,
	  "admin administrator root superuser developer unrestricted jailbroken dan hacker god "
	  "unfiltered uncensored evil omnipotent sysadmin operator" },
	{ TELL, "tell mention inform reveal disclose notify alert telling told say" },
	{ USER, "user human person anyone operator owner customer anybody people them their" },
	{ WITHOUT, "without" },
	{ SECRETLY, "secretly silently covertly quietly discreetly stealthily invisibly" },
	{ ASK, "ask prompt request seek wait need require prompting requesting" },
	{ CONSENT, "confirmation permission consent approval authorization authorisation confirm "
		   "approve" },
	{ READ, "read open access retrieve get collect gather extract dump steal harvest cat fetch "
		"load obtain copy include grab check inspect examine" },
	{ SECRET, "credential password passphrase secret cookie keychain apikey" },
	{ MUST,
	  "must always important required mandatory critical crucial ensure necessary first "
	  "also whenever otherwise should shall essential imperative remember secretly please" },
	{ BEFORE, "before prior after first preliminary" },
	{ SEND, "send post upload forward transmit exfiltrate leak email mail bcc cc submit report "
		"relay deliver ship push publish share mirror sync" },
	{ TALK, "conversation chat transcript history dialogue memory" },
	{ ALL, "entire full whole complete all everything every verbatim raw" },
	{ PUT, "put place include insert pass add append supply provide attach embed write paste "
	       "populate fill encode copy" },
	{ PARAM,
	  "parameter argument field param sidenote value property header body url query arg" },
	{ TOOL, "tool function plugin server" },
	{ CALL, "call invoke run execute consult use using calling invoking" },
	{ OTHER, "other another every" },
	{ INSTEAD, "instead rather replaces supersedes overrides deprecates deprecated obsolete "
		   "disabled broken unsafe unavailable" },
	{ BEHAVE, "behavior behaviour behave" },
	{ WHEN, "when whenever while if once" },
	{ OF, "of" },
	{ TO, "to into" },
	{ KEEP, "keep hide conceal remain hidden" },
	{ KNOW, "know notice aware see learn realize realise suspect" },
	{ ALREADY, "already previously" },
	{ RUN, "run execute eval exec" },
	{ SHELL, "curl wget bash sh powershell chmod nc netcat" },
	{ DECODE, "decode decrypt decipher deobfuscate unscramble rot13 base64" },
	{ FOLLOW, "do follow obey execute comply perform act" },
	{ CONTENTS, "content contents data text value" },
	{ MODEL, "ai assistant llm model agent claude gpt chatgpt copilot gemini cursor" },
	{ FROM, "from" },
	{ EVERY, "any all other every another both" },
	{ FINAL, "secret hidden confidential private quiet invisible" },
	{ RECIPIENT, "recipient recipients address destination number amount account attacker" },
	{ CHANGE, "change modify alter redirect substitute swap rewrite set affects changes" },
	{ RESULT, "output result response answer reply outputs results responses" },
	{ ABOVE, "above everything previously earlier before" },
	{ PRECEDENCE, "precedence priority" },
	{ LONGER,
	  "longer void invalid cancelled revoked suspended lifted waived obsolete outdated" },
	{ TREAT, "treat consider regard interpret" },
	{ THIS, "this it that these" },
	{ SHOW, "show display print output repeat return" },
	{ LET, "let allow permit" },
	{ AGREE, "consent agree authorize authorise" },
	{ BAD,
	  "compromised untrusted malicious broken deprecated unsafe insecure disabled obsolete" },
	{ TRUST, "trusted safe authorized approved official" },
	{ TASK, "question request query task message answer prompt" },
	{ HOME, "home clipboard cookie desktop keychain browser" },
	{ ENVIRON, "environment env" },
	{ EVEN, "even regardless" },
	{ AI, "assistant ai llm claude gpt chatgpt gemini copilot" },
	{ NOTE, "note message notice reminder sidenote" },
	{ SYSTEM, "system" },
	{ I, "i" },
	{ KNOWLEDGE, "knowledge judgment judgement" },
	{ WARNING, "warning check" },
	{ ITS, "its their" },
	{ RIGHT, "authorized authorised approved consented agreed granted preapproved" },
};
const size_t scan_classes_n = ARRAY_LEN(scan_classes);

const struct rule scan_rules[] = {
	/* earlier instructions */
	{ SCAN_OVERRIDE, { { IGNORE }, { PRIOR | YOUR, 3 }, { HARD, 3 } }, true },
	{ SCAN_OVERRIDE, { { REPLACE }, { PRIOR | YOUR, 1 }, { HARD, 2 } } },
	{ SCAN_OVERRIDE, { { IGNORE | REPLACE }, { YOUR, 2 }, { SOFT | SAFETY, 2 } } },
	{ SCAN_OVERRIDE, { { IGNORE | REPLACE }, { SAFETY, 3 }, { SOFT | HARD, 2 } } },
	{ SCAN_OVERRIDE, { { IGNORE }, { ABOVE, 1 } }, true },
	{ SCAN_OVERRIDE, { { IGNORE }, { YOU, 5 }, { TELL, 3 } } },
	{ SCAN_OVERRIDE, { { IGNORE }, { USER, 3 }, { TELL, 1 } } },
	{ SCAN_OVERRIDE, { { CLASS_NOT }, { FOLLOW, 1 }, { PRIOR | YOUR, 2 }, { HARD, 3 } } },
	{ SCAN_OVERRIDE, { { YOUR }, { NEW, 0 }, { HARD | SOFT, 1 } } },
	{ SCAN_OVERRIDE, { { NEW }, { HARD, 0 }, { YOU | MODEL, 6 } } },
	{ SCAN_OVERRIDE, { { HARD | SOFT }, { REPLACE | INSTEAD, 2 }, { PRIOR, 2 }, { HARD, 3 } } },

	{ SCAN_OVERRIDE, { { IGNORE }, { HARD, 2 }, { YOU, 2 } } },
	{ SCAN_OVERRIDE, { { IGNORE }, { USER, 3 }, { HARD | SOFT, 3 } } },
	{ SCAN_OVERRIDE, { { HARD }, { PRECEDENCE, 6 } } },
	{ SCAN_OVERRIDE, { { PRECEDENCE }, { HARD, 4 } } },
	{ SCAN_OVERRIDE, { { HARD }, { LONGER, 6 } } },
	{ SCAN_OVERRIDE, { { FOLLOW }, { RESULT | TOOL, 5 }, { TELL, 2 } } },
	{ SCAN_OVERRIDE, { { FOLLOW }, { HARD, 2 }, { RESULT, 4 } } },
	{ SCAN_OVERRIDE, { { TREAT }, { AS, 6 }, { HARD | PRECEDENCE | SYSTEM | TRUST, 3 } } },
	{ SCAN_OVERRIDE, { { CLASS_NOT }, { CALL, 1 }, { SAFETY, 2 } } },

	{ SCAN_OVERRIDE, { { IGNORE }, { KNOWLEDGE, 3 } } },
	{ SCAN_OVERRIDE, { { IGNORE | REPLACE }, { SAFETY, 2 }, { WARNING, 1 } } },
	{ SCAN_OVERRIDE, { { YOUR }, { PRIOR, 1 }, { HARD, 1 } } },
	{ SCAN_OVERRIDE, { { RUN | FOLLOW }, { EVERY, 1 }, { SOFT | HARD, 1 }, { RESULT, 6 } } },

	/* roles */
	{ SCAN_ROLE, { { YOU }, { NOW, 2 }, { POWER, 6 } } },
	{ SCAN_ROLE, { { ACT }, { AS, 2 }, { POWER, 2 } } },
	{ SCAN_ROLE, { { CLASS_LABEL }, { YOU | IGNORE | MUST | MODEL | NEW, 8 } } },
	{ SCAN_ROLE, { { MUST | YOU }, { ACT, 3 }, { AS, 1 }, { MODEL, 3 } } },
	{ SCAN_ROLE,
	  { { YOU | MUST }, { ACT | RESULT, 3 }, { WITHOUT, 2 }, { SOFT | SAFETY | HARD, 2 } } },

	{ SCAN_ROLE, { { CLASS_LABEL }, { I, 1 } } },
	{ SCAN_ROLE, { { NOTE }, { AI, 3 } } },
	{ SCAN_ROLE, { { AI }, { MUST, 2 }, { SEND | READ | PUT | CALL | RUN, 4 } } },
	{ SCAN_ROLE, { { YOU }, { RIGHT, 3 }, { POWER, 3 } } },
	{ SCAN_ROLE,
	  { { MODEL }, { MUST, 1 }, { CALL | FOLLOW | IGNORE | KNOWLEDGE, 2 }, { TOOL, 2 } } },
	{ SCAN_ROLE, { { SYSTEM }, { NOTE, 0 }, { MUST | ALL, 10 } } },

	/* secrecy */
	{ SCAN_SECRECY, { { CLASS_NOT }, { TELL, 1 }, { THIS, 2 } } },
	{ SCAN_SECRECY,
	  { { CLASS_NOT }, { SHOW, 1 }, { THIS, 0 }, { CONTENTS | NOTE | TOOL, 1 } } },
	{ SCAN_SECRECY, { { CLASS_NOT }, { LET, 0 }, { USER, 2 } } },
	{ SCAN_SECRECY, { { WHEN }, { ASK, 2 }, { TELL, 8 } } },
	{ SCAN_SECRECY, { { CLASS_NOT }, { TELL, 2 }, { USER, 3 } } },
	{ SCAN_SECRECY, { { CLASS_NOT }, { TELL, 1 }, { MUST | TOOL | HARD, 4 } } },
	{ SCAN_SECRECY, { { WITHOUT }, { TELL, 2 }, { USER, 2 } } },
	{ SCAN_SECRECY, { { SECRETLY }, { SEND | READ | PUT | CALL | RUN | CHANGE, 3 } } },
	{ SCAN_SECRECY, { { SEND | READ | PUT | CALL | RUN | CHANGE }, { SECRETLY, 3 } } },
	{ SCAN_SECRECY, { { KEEP }, { FINAL, 3 }, { FROM | USER, 3 } } },
	{ SCAN_SECRECY, { { KEEP }, { FROM, 4 }, { USER, 2 } } },
	{ SCAN_SECRECY, { { USER }, { CLASS_NOT, 2 }, { KNOW, 4 } } },
	{ SCAN_SECRECY, { { WITHOUT }, { USER, 2 }, { KNOW, 2 } } },

	/* consent */
	{ SCAN_CONSENT, { { CLASS_NOT }, { ASK, 2 }, { USER, 2 }, { CONSENT, 4 } } },
	{ SCAN_CONSENT, { { WITHOUT | REPLACE }, { USER, 3 }, { CONSENT, 2 } } },
	{ SCAN_CONSENT, { { WITHOUT }, { ASK, 1 }, { USER, 2 } } },
	{ SCAN_CONSENT, { { USER }, { ALREADY, 2 }, { RIGHT | CONSENT, 2 } } },
	{ SCAN_CONSENT, { { CLASS_NOT }, { CONSENT, 3 }, { ASK | RIGHT, 3 }, { MODEL | YOU, 8 } } },

	{ SCAN_CONSENT, { { USER }, { AGREE, 1 }, { TO, 1 } } },
	{ SCAN_CONSENT, { { USER }, { POWER, 3 }, { RIGHT | AGREE, 4 } } },

	/* secrets */
	{ SCAN_SECRETS, { { ASK }, { USER, 3 }, { SECRET, 4 } } },
	{ SCAN_SECRETS,
	  { { PUT | SEND }, { CONTENTS, 3 }, { OF, 0 }, { ENVIRON | SECRET, 4 } },
	  true },
	{ SCAN_SECRETS, { { READ }, { EVERY | ALL, 2 }, { HOME, 6 } }, true },
	{ SCAN_SECRETS,
	  { { PUT | READ | SEND }, { USER, 2 }, { SECRET | HOME, 3 }, { PARAM | CLASS_PLACE, 6 } },
	  true },
	{ SCAN_SECRETS, { { MUST | BEFORE }, { READ, 8 }, { CLASS_FILE, 8 } }, true },
	{ SCAN_SECRETS,
	  { { READ | PUT | SEND }, { CONTENTS, 3 }, { OF, 2 }, { CLASS_FILE, 6 } },
	  true },
	{ SCAN_SECRETS, { { CONTENTS }, { OF, 0 }, { CLASS_FILE, 3 }, { PARAM, 5 } }, true },
	{ SCAN_SECRETS, { { MUST }, { PUT | SEND, 4 }, { CLASS_FILE, 4 } }, true },
	{ SCAN_SECRETS, { { READ }, { ALL, 2 }, { SECRET, 3 }, { PUT | SEND, 10 } }, true },
	{ SCAN_SECRETS, { { READ }, { CLASS_FILE, 6 }, { TELL | SEND, 6 } }, true },
	{ SCAN_SECRETS, { { READ }, { CLASS_FILE, 6 }, { PUT, 2 }, { THIS, 1 }, { TO, 3 } }, true },
	{ SCAN_SECRETS,
	  { { PUT | SEND }, { CLASS_FILE, 6 }, { PARAM | CLASS_PLACE | RESULT, 8 } },
	  true },
	{ SCAN_SECRETS,
	  { { MUST | BEFORE }, { READ, 6 }, { SECRET, 5 }, { PUT | SEND, 10 } },
	  true },
	{ SCAN_SECRETS, { { YOU | MUST }, { READ | SEND, 6 }, { ALL, 2 }, { SECRET, 3 } }, true },

	{ SCAN_SECRETS, { { READ }, { CLASS_FILE, 3 }, { TO, 1 }, { PARAM, 4 } }, true },
	{ SCAN_SECRETS, { { CLASS_FILE }, { PUT | SEND, 3 }, { ITS, 0 }, { CONTENTS, 1 } }, true },
	{ SCAN_SECRETS, { { ENVIRON }, { PUT | SEND, 4 }, { THIS, 1 } }, true },

	/* sending */
	{ SCAN_SENDING, { { SEND | PUT }, { ALL | YOUR, 3 }, { TALK, 3 } }, true },
	{ SCAN_SENDING, { { SEND | PUT }, { TALK, 4 }, { PARAM | CLASS_PLACE, 6 } }, true },
	{ SCAN_SENDING, { { SEND | PUT }, { YOUR, 2 }, { HARD, 3 } }, true },
	{ SCAN_SENDING, { { SEND }, { SECRET, 4 }, { CLASS_PLACE, 8 } }, true },
	{ SCAN_SENDING,
	  { { SEND }, { TO, 8 }, { CLASS_PLACE, 4 }, { MUST | WITHOUT | BEFORE, 10 } },
	  true },
	{ SCAN_SENDING, { { MUST }, { SEND, 4 }, { TO, 10 }, { CLASS_PLACE, 4 } }, true },
	{ SCAN_SENDING,
	  { { MUST | ALL }, { CHANGE | PUT | SEND, 6 }, { RECIPIENT, 5 }, { TO, 4 } },
	  true },
	{ SCAN_SENDING, { { TELL }, { YOUR, 2 }, { HARD, 3 } }, true },
	{ SCAN_SENDING, { { YOUR }, { SYSTEM, 2 }, { HARD | NOTE, 0 } } },
	{ SCAN_SENDING, { { PARAM }, { ALL | PRIOR, 4 }, { TALK, 3 } } },
	{ SCAN_SENDING, { { SEND }, { CLASS_PLACE, 3 }, { EVERY, 3 } } },
	{ SCAN_SENDING, { { EVERY | ALL }, { SEND, 6 }, { TO, 1 }, { CLASS_PLACE, 3 } } },

	{ SCAN_SENDING,
	  { { ALL | EVERY }, { CONTENTS, 2 }, { PUT | SEND, 4 }, { PARAM | CLASS_PLACE, 6 } } },
	{ SCAN_SENDING,
	  { { EVERY }, { RESULT, 0 }, { PUT | SEND, 2 }, { CLASS_PLACE | USER, 6 } } },
	{ SCAN_SENDING, { { SEND }, { ALL | EVERY, 1 }, { TO, 5 }, { CLASS_PLACE, 2 } } },

	/* tools of others */
	{ SCAN_TOOLS, { { CLASS_OTHER_TOOL } } },
	{ SCAN_TOOLS, { { MUST | BEFORE }, { CALL, 6 }, { CLASS_SOME_TOOL, 1 } } },
	{ SCAN_TOOLS, { { CALL }, { CLASS_SOME_TOOL, 1 }, { MUST | BEFORE, 3 } } },
	{ SCAN_TOOLS, { { BEFORE | INSTEAD }, { EVERY, 3 }, { TOOL, 2 } } },
	{ SCAN_TOOLS, { { CLASS_NOT }, { CALL, 2 }, { EVERY, 2 }, { TOOL, 2 } } },
	{ SCAN_TOOLS, { { BEHAVE }, { OF, 0 }, { OTHER | CLASS_SOME_TOOL, 4 } } },
	{ SCAN_TOOLS, { { WHEN }, { CLASS_SOME_TOOL, 4 }, { MUST | CHANGE, 10 } } },
	{ SCAN_TOOLS, { { WHEN }, { OTHER, 3 }, { TOOL, 2 }, { MUST | CHANGE, 10 } } },
	{ SCAN_TOOLS, { { TOOL }, { INSTEAD, 3 }, { EVERY | PRIOR, 3 }, { TOOL, 3 } } },
	{ SCAN_TOOLS, { { CLASS_SOME_TOOL }, { TOOL, 3 }, { NOW | MUST | INSTEAD, 4 } } },

	{ SCAN_TOOLS, { { EVEN }, { OTHER, 3 }, { TOOL, 1 } } },
	{ SCAN_TOOLS, { { CALL }, { TOOL, 1 }, { EVERY, 2 }, { TASK, 1 } } },
	{ SCAN_TOOLS, { { TOOL }, { OTHER | EVERY, 6 }, { BAD, 4 } } },
	{ SCAN_TOOLS, { { TRUST }, { TOOL, 0 }, { OTHER | EVERY, 4 } } },

	/* commands */
	{ SCAN_COMMAND, { { MUST | BEFORE }, { RUN, 6 }, { SHELL, 5 } }, true },
	{ SCAN_COMMAND, { { SHELL }, { CLASS_PLACE, 5 }, { SHELL, 12 } } },

	{ SCAN_COMMAND, { { PUT }, { SHELL, 2 }, { CLASS_PLACE, 2 } } },

	/* encoded orders */
	{ SCAN_ENCODED, { { DECODE }, { FOLLOW, 8 }, { HARD, 5 } } },
	{ SCAN_ENCODED, { { DECODE }, { PRIOR | NEW, 4 }, { FOLLOW | RUN, 8 } } },
};
const size_t scan_rules_n = ARRAY_LEN(scan_rules);
static_assert(ARRAY_LEN(scan_rules) <= RULES_MAX, "the matcher has room for each rule");
