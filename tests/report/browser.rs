//! A browser without a window, which tests drive as a user would: by the Chrome DevTools Protocol over a pipe.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// After so long a browser that does not answer never will.
const PATIENCE: Duration = Duration::from_secs(60);

/// Names that Chromium goes by.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// A browser with one page.
pub struct Browser {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    number: u64,
    session: Option<String>,
    /// What happened in the page since it was opened.
    events: Vec<Value>,
    _profile: tempfile::TempDir,
}

/// How a page is looked at.
#[derive(Clone, Copy, Debug)]
pub struct View {
    pub width: u32,
    pub height: u32,
    pub is_dark: bool,
}

/// The browser of this machine, if it has one.
fn find() -> Option<PathBuf> {
    if let Some(own) = std::env::var_os("STENCILC_CHROMIUM") {
        return Some(PathBuf::from(own));
    }
    let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH")?).collect();
    let paths = NAMES.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    paths.into_iter().find(|path| path.is_file())
}

impl Browser {
    /// Starts one; nothing where there is none, which on a machine for continuous integration is an error.
    pub fn start() -> Option<Self> {
        let Some(program) = find() else {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "there is no Chromium: apt-get install chromium");
            println!("skipped: no Chromium, which opens the page of a report (apt-get install chromium)");
            return None;
        };
        let profile = tempfile::tempdir().unwrap();
        // The browser reads calls from its third file and answers on its fourth.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 0</dev/null 1>&2"])
            .arg(program)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (to, out) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (sender, from) = channel();
        std::thread::spawn(move || {
            let mut out = BufReader::new(out);
            let mut bytes = Vec::new();
            while out.read_until(0, &mut bytes).is_ok_and(|length| length > 0) {
                bytes.pop();
                if serde_json::from_slice(&bytes).map(|message| sender.send(message)).is_err() {
                    break;
                }
                bytes.clear();
            }
        });
        let mut own = Self { child, to, from, number: 0, session: None, events: Vec::new(), _profile: profile };
        let page = own.call("Target.createTarget", json!({"url": "about:blank"}));
        let session = own.call("Target.attachToTarget", json!({"targetId": page["targetId"], "flatten": true}));
        own.session = Some(session["sessionId"].as_str().unwrap().to_owned());
        for domain in ["Page", "Runtime", "Log", "Network"] {
            own.call(&format!("{domain}.enable"), json!({}));
        }
        Some(own)
    }

    /// Asks the browser for something.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.number += 1;
        let mut call = json!({"id": self.number, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            call["sessionId"] = json!(session);
        }
        let mut bytes = serde_json::to_vec(&call).unwrap();
        bytes.push(0);
        self.to.write_all(&bytes).unwrap();
        loop {
            let message = self.from.recv_timeout(PATIENCE).unwrap_or_else(|error| panic!("{method}: {error}"));
            if message["id"] == json!(self.number) {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].clone();
            }
            self.events.push(message);
        }
    }

    /// What a piece of JavaScript comes to.
    pub fn eval(&mut self, text: &str) -> Value {
        let asked = json!({"expression": text, "awaitPromise": true, "returnByValue": true, "userGesture": true});
        let answer = self.call("Runtime.evaluate", asked);
        assert!(answer.get("exceptionDetails").is_none(), "{text}\n{:#}", answer["exceptionDetails"]);
        answer["result"]["value"].clone()
    }

    /// Waits until a piece of JavaScript is true.
    #[track_caller]
    pub fn wait(&mut self, text: &str) {
        let start = Instant::now();
        while self.eval(text) != json!(true) {
            assert!(start.elapsed() < PATIENCE, "never true: {text}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Opens a file at a place in it, and waits until its figures are drawn.
    pub fn open(&mut self, path: &Path, place: &str, view: View) {
        let View { width, height, is_dark } = view;
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600});
        self.call("Emulation.setDeviceMetricsOverride", metrics);
        let scheme = if is_dark { "dark" } else { "light" };
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.call("Emulation.setEmulatedMedia", json!({"media": "screen", "features": features}));
        self.call("Page.navigate", json!({"url": "about:blank"}));
        self.events.clear();
        self.call("Page.navigate", json!({"url": format!("file://{}{place}", path.display())}));
        self.wait("document.documentElement?.dataset.ready !== undefined");
    }

    /// Presses and releases a key.
    pub fn press(&mut self, key: &str) {
        let (code, text) = match key {
            "Enter" => (13, "\r"),
            "Escape" => (27, ""),
            "Tab" => (9, ""),
            other => panic!("{other}"),
        };
        for kind in ["keyDown", "keyUp"] {
            let text = if kind == "keyDown" { text } else { "" };
            let event = json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text});
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Types a text where the focus is.
    pub fn write(&mut self, text: &str) {
        self.call("Input.insertText", json!({"text": text}));
    }

    /// Errors and warnings that the page made.
    pub fn complaints(&self) -> Vec<&Value> {
        let is_complaint = |event: &&Value| match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => true,
            Some("Runtime.consoleAPICalled") => {
                ["error", "warning", "assert"].contains(&event["params"]["type"].as_str().unwrap())
            }
            Some("Log.entryAdded") => event["params"]["entry"]["level"] != "verbose",
            _ => false,
        };
        self.events.iter().filter(is_complaint).collect()
    }

    /// What the page asked for, on this machine or elsewhere.
    pub fn requests(&self) -> Vec<String> {
        let asked = self.events.iter().filter(|event| event["method"] == "Network.requestWillBeSent");
        asked.map(|event| event["params"]["request"]["url"].as_str().unwrap().to_owned()).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
