/*
 * The tables of names that mean more than one owner: public suffixes, and services that carry data
 * from anyone to anyone. Kept short and plain: entries are suffixes on label boundaries.
 */
#include <stddef.h>

#include "base/own.h"
#include "policy/domain.h"

/* Single labels under which an organisation names its own hosts; every other one is a public suffix. */
static const char *const private_tlds[] = {
	"corp", "home", "internal", "intranet", "lan", "local", "private", "test",
};

/*
 * Registries with a second level, and hosting suffixes where an account is enough to get a name: the
 * part of publicsuffix.org that a person writes into an allowlist.
 */
static const char *const public_suffixes[] = {
	"ac.jp",
	"ac.nz",
	"ac.uk",
	"amazonaws.com",
	"amplifyapp.com",
	"appspot.com",
	"awsapprunner.com",
	"azureedge.net",
	"azurestaticapps.net",
	"azurewebsites.net",
	"bitbucket.io",
	"blob.core.windows.net",
	"blogspot.com",
	"cloudapp.azure.com",
	"cloudapp.net",
	"cloudfront.net",
	"cloudfunctions.net",
	"co.id",
	"co.il",
	"co.in",
	"co.jp",
	"co.kr",
	"co.nz",
	"co.th",
	"co.uk",
	"co.za",
	"codesandbox.io",
	"com.ar",
	"com.au",
	"com.br",
	"com.cn",
	"com.hk",
	"com.mx",
	"com.my",
	"com.pl",
	"com.sg",
	"com.tr",
	"com.tw",
	"com.ua",
	"com.vn",
	"core.windows.net",
	"deno.dev",
	"digitaloceanspaces.com",
	"edgeone.app",
	"elasticbeanstalk.com",
	"firebaseapp.com",
	"firebaseio.com",
	"fly.dev",
	"framer.app",
	"gitbook.io",
	"github.dev",
	"github.io",
	"gitlab.io",
	"glitch.me",
	"go.jp",
	"gov.uk",
	"herokuapp.com",
	"hf.space",
	"lambda-url.us-east-1.on.aws",
	"lovable.app",
	"me.uk",
	"ne.jp",
	"net.au",
	"net.br",
	"net.cn",
	"netlify.app",
	"ngrok.app",
	"notion.site",
	"now.sh",
	"on.aws",
	"onrender.com",
	"or.jp",
	"org.au",
	"org.br",
	"org.cn",
	"org.uk",
	"pages.dev",
	"r2.dev",
	"railway.app",
	"readthedocs.io",
	"repl.co",
	"replit.app",
	"replit.dev",
	"run.app",
	"s3.amazonaws.com",
	"stackblitz.io",
	"storage.googleapis.com",
	"supabase.co",
	"surge.sh",
	"up.railway.app",
	"vercel.app",
	"vercel.dev",
	"web.app",
	"web.core.windows.net",
	"webflow.io",
	"windows.net",
	"wixsite.com",
	"wordpress.com",
	"workers.dev",
};

static const struct {
	const char *suffix, *kind;
} relays[] = {
	/* Tunnels to a machine of anyone's. */
	{ "bore.pub", "tunnel" },
	{ "cfargotunnel.com", "tunnel" },
	{ "devtunnels.ms", "tunnel" },
	{ "expose.dev", "tunnel" },
	{ "ngrok-free.app", "tunnel" },
	{ "ngrok-free.dev", "tunnel" },
	{ "ngrok.app", "tunnel" },
	{ "ngrok.com", "tunnel" },
	{ "ngrok.dev", "tunnel" },
	{ "ngrok.io", "tunnel" },
	{ "localhost.run", "tunnel" },
	{ "lhr.life", "tunnel" },
	{ "loca.lt", "tunnel" },
	{ "localtunnel.me", "tunnel" },
	{ "loclx.io", "tunnel" },
	{ "pagekite.me", "tunnel" },
	{ "pinggy.io", "tunnel" },
	{ "pinggy.link", "tunnel" },
	{ "playit.gg", "tunnel" },
	{ "portmap.io", "tunnel" },
	{ "serveo.net", "tunnel" },
	{ "telebit.cloud", "tunnel" },
	{ "trycloudflare.com", "tunnel" },
	{ "ts.net", "tunnel" },
	{ "tunnelmole.net", "tunnel" },
	{ "zrok.io", "tunnel" },
	/* Whoever made the URL reads what is sent there. */
	{ "beeceptor.com", "webhook" },
	{ "burpcollaborator.net", "webhook" },
	{ "canarytokens.com", "webhook" },
	{ "dnslog.cn", "webhook" },
	{ "hookb.in", "webhook" },
	{ "hookdeck.com", "webhook" },
	{ "ifttt.com", "webhook" },
	{ "interact.sh", "webhook" },
	{ "mockbin.org", "webhook" },
	{ "ntfy.sh", "webhook" },
	{ "oast.fun", "webhook" },
	{ "oast.live", "webhook" },
	{ "oast.me", "webhook" },
	{ "oast.online", "webhook" },
	{ "oast.pro", "webhook" },
	{ "oast.site", "webhook" },
	{ "oastify.com", "webhook" },
	{ "pipedream.com", "webhook" },
	{ "pipedream.net", "webhook" },
	{ "postb.in", "webhook" },
	{ "ptsv2.com", "webhook" },
	{ "ptsv3.com", "webhook" },
	{ "requestbin.com", "webhook" },
	{ "requestbin.net", "webhook" },
	{ "requestcatcher.com", "webhook" },
	{ "requestinspector.com", "webhook" },
	{ "svix.com", "webhook" },
	{ "typedwebhook.tools", "webhook" },
	{ "webhook.cool", "webhook" },
	{ "webhook.site", "webhook" },
	{ "zapier.com", "webhook" },
	/* Text that anyone may post and anyone may read. */
	{ "controlc.com", "paste" },
	{ "dpaste.com", "paste" },
	{ "dpaste.org", "paste" },
	{ "ghostbin.com", "paste" },
	{ "gist.github.com", "paste" },
	{ "hastebin.com", "paste" },
	{ "hastebin.skyra.pw", "paste" },
	{ "ix.io", "paste" },
	{ "justpaste.it", "paste" },
	{ "nekobin.com", "paste" },
	{ "paste.c-net.org", "paste" },
	{ "paste.debian.net", "paste" },
	{ "paste.ee", "paste" },
	{ "paste.gg", "paste" },
	{ "paste.rs", "paste" },
	{ "paste.ubuntu.com", "paste" },
	{ "pastebin.com", "paste" },
	{ "pasteio.com", "paste" },
	{ "pastes.io", "paste" },
	{ "privatebin.net", "paste" },
	{ "rentry.co", "paste" },
	{ "rentry.org", "paste" },
	{ "sprunge.us", "paste" },
	{ "telegra.ph", "paste" },
	{ "termbin.com", "paste" },
	{ "toptal.com", "paste" },
	{ "write.as", "paste" },
	/* Files without an account. */
	{ "0x0.st", "file drop" },
	{ "anonfiles.com", "file drop" },
	{ "bashupload.com", "file drop" },
	{ "catbox.moe", "file drop" },
	{ "cl1p.net", "file drop" },
	{ "dropmefiles.com", "file drop" },
	{ "envs.sh", "file drop" },
	{ "file.io", "file drop" },
	{ "filebin.net", "file drop" },
	{ "fileditch.com", "file drop" },
	{ "free.keep.sh", "file drop" },
	{ "gofile.io", "file drop" },
	{ "keep.sh", "file drop" },
	{ "litterbox.catbox.moe", "file drop" },
	{ "oshi.at", "file drop" },
	{ "pixeldrain.com", "file drop" },
	{ "pomf.lain.la", "file drop" },
	{ "send.vis.ee", "file drop" },
	{ "sendgb.com", "file drop" },
	{ "tmpfiles.org", "file drop" },
	{ "transfer.adttemp.com.br", "file drop" },
	{ "transfer.sh", "file drop" },
	{ "uguu.se", "file drop" },
	{ "wetransfer.com", "file drop" },
	{ "x0.at", "file drop" },
	/* Chat hooks: a POST is a message in a room of anyone's. */
	{ "api.telegram.org", "chat relay" },
	{ "discord.com", "chat relay" },
	{ "discordapp.com", "chat relay" },
	{ "hooks.slack.com", "chat relay" },
};

static bool is_at_or_below(struct aw_str name, const char *suffix)
{
	struct aw_str own = aw_str_from(suffix);

	if (!aw_str_ends(name, suffix))
		return false;
	return name.len == own.len || name.ptr[name.len - own.len - 1] == '.';
}

bool aw_policy_is_relay(struct aw_str name, const char **ret_kind)
{
	for (size_t i = 0; i < AW_ARRAY_LEN(relays); i++) {
		if (!is_at_or_below(name, relays[i].suffix))
			continue;
		if (ret_kind != NULL)
			*ret_kind = relays[i].kind;
		return true;
	}
	return false;
}

static bool is_one_label(struct aw_str name)
{
	for (size_t i = 0; i < name.len; i++)
		if (name.ptr[i] == '.')
			return false;
	return true;
}

bool aw_domain_is_public_suffix(struct aw_str suffix)
{
	if (is_one_label(suffix)) {
		for (size_t i = 0; i < AW_ARRAY_LEN(private_tlds); i++)
			if (aw_str_is(suffix, private_tlds[i]))
				return false;
		return true;
	}
	for (size_t i = 0; i < AW_ARRAY_LEN(public_suffixes); i++)
		if (aw_str_is(suffix, public_suffixes[i]))
			return true;
	return false;
}
