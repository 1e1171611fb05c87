//! The same as ../agent.c, in Rust by `extern "C"`, without a crate.
//!
//!     rustc agent.rs -l cordon && ./agent
use std::ffi::{c_void, CStr, CString};
use std::os::raw::{c_char, c_int};
use std::ptr::{null, null_mut};

type Handle = *mut c_void;

extern "C" {
    fn cordon_error_new() -> Handle;
    fn cordon_error_text(err: Handle, name: *const c_char) -> *const c_char;
    fn cordon_open(options: *const c_void, cordon: *mut Handle, err: Handle) -> c_int;
    fn cordon_unref(cordon: Handle);
    fn cordon_request_new(request: *mut Handle, err: Handle) -> c_int;
    fn cordon_request_set(request: Handle, key: *const c_char, value: *const c_char, err: Handle) -> c_int;
    fn cordon_request_command(request: Handle, argv: *const *const c_char, err: Handle) -> c_int;
    fn cordon_request_unref(request: Handle);
    fn cordon_start(cordon: Handle, request: Handle, process: *mut Handle, err: Handle) -> c_int;
    fn cordon_process_fd(process: Handle) -> c_int;
    fn cordon_process_next(process: Handle, event: *mut Handle, err: Handle) -> c_int;
    fn cordon_process_answer(process: Handle, card: *const c_char, hash: *const c_char, answer: c_int, reason: *const c_char, err: Handle) -> c_int;
    fn cordon_process_cancel(process: Handle, grace_ms: i64, err: Handle) -> c_int;
    fn cordon_process_unref(process: Handle);
    fn cordon_value_text(value: Handle, path: *const c_char, length: *mut usize) -> *const c_char;
    fn cordon_value_unref(value: Handle);
    fn poll(ready: *mut PollFd, count: u64, timeout: c_int) -> c_int;
}

#[repr(C)]
struct PollFd {
    fd: c_int,
    events: i16,
    revents: i16,
}

const APPROVED_ONCE: c_int = 1;

fn c(text: &str) -> CString {
    CString::new(text).unwrap()
}

struct Agent {
    cordon: Handle,
    err: Handle,
}

impl Agent {
    fn must(&self, result: c_int) {
        if result < 0 {
            let why = unsafe { CStr::from_ptr(cordon_error_text(self.err, c("reason").as_ptr())) };
            panic!("{}", why.to_string_lossy());
        }
    }

    fn text(&self, value: Handle, path: &str) -> Vec<u8> {
        let mut length = 0;
        let data = unsafe { cordon_value_text(value, c(path).as_ptr(), &mut length) };
        if data.is_null() { Vec::new() } else { unsafe { std::slice::from_raw_parts(data as *const u8, length) }.to_vec() }
    }

    fn start(&self, line: &str, read: Option<&str>) -> Handle {
        let words: Vec<CString> = ["sh", "-c", line].iter().map(|word| c(word)).collect();
        let mut argv: Vec<*const c_char> = words.iter().map(|word| word.as_ptr()).collect();
        argv.push(null());
        let (mut request, mut process) = (null_mut(), null_mut());
        unsafe {
            self.must(cordon_request_new(&mut request, self.err));
            for (key, value) in [("session", Some("agent-rs")), ("ask", Some("true")), ("read", read)] {
                if let Some(value) = value {
                    self.must(cordon_request_set(request, c(key).as_ptr(), c(value).as_ptr(), self.err));
                }
            }
            self.must(cordon_request_command(request, argv.as_ptr(), self.err));
            self.must(cordon_start(self.cordon, request, &mut process, self.err));
            cordon_request_unref(request);
        }
        process
    }

    fn follow(&self, process: Handle) {
        loop {
            let mut event = null_mut();
            self.must(unsafe { cordon_process_next(process, &mut event, self.err) });
            if event.is_null() {
                let mut ready = PollFd { fd: unsafe { cordon_process_fd(process) }, events: 1, revents: 0 };
                unsafe { poll(&mut ready, 1, -1) };
                continue;
            }
            let (kind, data, by) = (self.text(event, "event"), self.text(event, "data"), self.text(event, "result.ended_by"));
            if kind == b"asks" {
                let (card, hash) = (CString::new(self.text(event, "card")).unwrap(), CString::new(self.text(event, "hash")).unwrap());
                self.must(unsafe { cordon_process_answer(process, card.as_ptr(), hash.as_ptr(), APPROVED_ONCE, null(), self.err) });
            } else if data == b"sleeping\n" {
                self.must(unsafe { cordon_process_cancel(process, 2000, self.err) });
            } else if kind == b"output" {
                print!("{}", String::from_utf8_lossy(&data));
            } else if kind == b"ended" && by != b"exit" {
                println!("{}", String::from_utf8_lossy(&by));
            }
            unsafe { cordon_value_unref(event) };
            if kind == b"ended" {
                return unsafe { cordon_process_unref(process) };
            }
        }
    }
}

fn main() {
    let mut agent = Agent { cordon: null_mut(), err: unsafe { cordon_error_new() } };
    let result = unsafe { cordon_open(null(), &mut agent.cordon, agent.err) };
    agent.must(result);
    agent.follow(agent.start("echo ran", Some("/var/tmp")));
    agent.follow(agent.start("echo sleeping; exec sleep 1000", None));
    unsafe { cordon_unref(agent.cordon) };
}
