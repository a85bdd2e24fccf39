//! Mails over SMTP, to servers that the hub allows.
//!
//! The connection is encrypted from the start on port 465, and as soon as the server offers it on others. A password is
//! never sent over a connection that is not encrypted.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};

use super::http::HttpClient;

/// How long sending a mail may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The port on which connections are encrypted from the start.
const SECURE_PORT: u16 = 465;
/// The longest line of an answer.
const LONGEST_LINE: usize = 4096;

/// A mail.
#[derive(Debug, Default, PartialEq, Eq)]
struct Mail {
    host: String,
    port: u16,
    address: String,
    alias: String,
    password: String,
    to: Vec<String>,
    subject: String,
    body: String,
}

impl Mail {
    /// Reads the parameters of an action. Nothing of them may begin a line of its own.
    fn read(params: &Value) -> Result<Self, String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let from = &params["from"];
        let to = params["to"].as_array().into_iter().flatten();
        let mail = Self {
            host: text(&from["host"]),
            port: from["port"]
                .as_u64()
                .and_then(|port| u16::try_from(port).ok())
                .ok_or("from.port is not a port")?,
            address: text(&from["address"]),
            alias: text(&from["alias"]),
            password: text(&from["password"]),
            to: to.map(text).collect(),
            subject: text(&params["content"]["subject"]),
            body: text(&params["content"]["body"]),
        };
        let lines = [&mail.host, &mail.address, &mail.alias, &mail.subject];
        let has_breaks = |text: &&String| text.contains(['\r', '\n', '\0']);
        if lines
            .into_iter()
            .chain(&mail.to)
            .any(|text| has_breaks(&text))
        {
            return Err("addresses and subjects have one line".to_owned());
        }
        let is_address = |text: &String| text.contains('@') && !text.contains(['<', '>', ' ']);
        let all: Vec<&String> = mail.to.iter().chain([&mail.address]).collect();
        let wrong = all.into_iter().find(|text| !is_address(text)).cloned();
        match wrong {
            Some(wrong) => Err(format!("{wrong:?} is not an address")),
            None if mail.to.is_empty() => Err("to is empty".to_owned()),
            None => Ok(mail),
        }
    }

    /// The mail as it is sent. The body is encoded, so that no line of it ends the mail.
    fn text(&self) -> String {
        let encoded = |text: &str| format!("=?utf-8?B?{}?=", STANDARD.encode(text));
        let from = if self.alias.is_empty() {
            format!("<{}>", self.address)
        } else {
            format!("{} <{}>", encoded(&self.alias), self.address)
        };
        let to: Vec<String> = self.to.iter().map(|to| format!("<{to}>")).collect();
        let mut text = format!(
            "From: {from}\r\nTo: {}\r\nSubject: {}\r\nMIME-Version: 1.0\r\nContent-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n",
            to.join(", "),
            encoded(&self.subject),
        );
        let body = STANDARD.encode(&self.body);
        for line in body.as_bytes().chunks(76) {
            text.push_str(&String::from_utf8_lossy(line));
            text.push_str("\r\n");
        }
        text
    }
}

/// Sends a mail.
pub async fn send(client: &HttpClient, params: &Value) -> Result<(), String> {
    let mail = Mail::read(params).map_err(|problem| format!("failed to send email: {problem}"))?;
    let sent = tokio::time::timeout(TIMEOUT, deliver(client, &mail)).await;
    let sent = sent.unwrap_or_else(|_| Err(format!("no answer within {TIMEOUT:?}")));
    sent.map_err(|problem| format!("failed to send email: {problem}"))
}

async fn deliver(client: &HttpClient, mail: &Mail) -> Result<(), String> {
    let stream = client.connect(&mail.host, mail.port).await?;
    if mail.port == SECURE_PORT {
        let stream = client.encrypt(&mail.host, stream).await?;
        let mut talk = Talk::new(stream);
        talk.expect(220).await?;
        talk.say("EHLO bellwether", 250).await?;
        return talk.mail(mail, true).await;
    }
    let mut talk = Talk::new(stream);
    talk.expect(220).await?;
    let offered = talk.say("EHLO bellwether", 250).await?;
    if !offered
        .iter()
        .any(|line| line.eq_ignore_ascii_case("STARTTLS"))
    {
        return talk.mail(mail, false).await;
    }
    talk.say("STARTTLS", 220).await?;
    let stream = client.encrypt(&mail.host, talk.stream.into_inner()).await?;
    let mut talk = Talk::new(stream);
    talk.say("EHLO bellwether", 250).await?;
    talk.mail(mail, true).await
}

/// A conversation with a server.
struct Talk<S> {
    stream: BufReader<S>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Talk<S> {
    fn new(stream: S) -> Self {
        Self {
            stream: BufReader::new(stream),
        }
    }

    /// Reads an answer, which has this code if all is well.
    async fn expect(&mut self, code: u16) -> Result<Vec<String>, String> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            let read = self.stream.read_line(&mut line).await;
            read.map_err(|error| error.to_string())?;
            if line.len() < 4 || line.len() > LONGEST_LINE || !line.is_ascii() {
                return Err("the server does not speak SMTP".to_owned());
            }
            let (head, rest) = line.split_at(4);
            lines.push(rest.trim_end().to_owned());
            if head.as_bytes()[3] != b'-' {
                return if head[..3] == code.to_string() {
                    Ok(lines)
                } else {
                    Err(line.trim_end().to_owned())
                };
            }
        }
    }

    async fn say(&mut self, line: &str, code: u16) -> Result<Vec<String>, String> {
        self.write(&format!("{line}\r\n")).await?;
        self.expect(code).await
    }

    async fn write(&mut self, text: &str) -> Result<(), String> {
        let stream = self.stream.get_mut();
        let written = stream.write_all(text.as_bytes()).await;
        written.map_err(|error| error.to_string())?;
        stream.flush().await.map_err(|error| error.to_string())
    }

    async fn mail(&mut self, mail: &Mail, is_secure: bool) -> Result<(), String> {
        if !mail.password.is_empty() {
            if !is_secure {
                let host = &mail.host;
                return Err(format!("{host} does not encrypt, the password is not sent"));
            }
            let secret = format!("\0{}\0{}", mail.address, mail.password);
            let secret = STANDARD.encode(secret);
            self.say(&format!("AUTH PLAIN {secret}"), 235).await?;
        }
        self.say(&format!("MAIL FROM:<{}>", mail.address), 250)
            .await?;
        for to in &mail.to {
            self.say(&format!("RCPT TO:<{to}>"), 250).await?;
        }
        self.say("DATA", 354).await?;
        self.write(&mail.text()).await?;
        self.say(".", 250).await?;
        // The mail is accepted: what comes after does not matter.
        let _ = self.say("QUIT", 221).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::io::{AsyncReadExt as _, duplex};

    use super::*;

    fn params() -> Value {
        json!({
            "from": {"address": "hub@example.org", "host": "mail.example.org", "port": 25},
            "to": ["ann@example.org"],
            "content": {"subject": "Release", "body": "<b>done</b>\r\n.\r\nRCPT TO:<x@y>"},
        })
    }

    #[tokio::test]
    async fn a_mail_is_sent_in_order_and_its_body_cannot_end_it() {
        let (client, mut server) = duplex(65_536);
        let answers = "250 ok\r\n250 ok\r\n354 go on\r\n250 queued\r\n221 bye\r\n";
        server.write_all(answers.as_bytes()).await.unwrap();
        let mail = Mail::read(&params()).unwrap();
        Talk::new(client).mail(&mail, false).await.unwrap();
        let mut said = String::new();
        server.read_to_string(&mut said).await.unwrap();
        let commands: Vec<&str> = said
            .lines()
            .filter(|line| line.contains(':') || *line == ".")
            .collect();
        assert_eq!(
            commands[..2],
            ["MAIL FROM:<hub@example.org>", "RCPT TO:<ann@example.org>"]
        );
        assert_eq!(commands.iter().filter(|line| **line == ".").count(), 1);
        assert!(!said.contains("x@y"), "{said}");
    }

    #[tokio::test]
    async fn a_password_is_not_sent_in_the_clear() {
        let (client, _server) = duplex(1024);
        let mut params = params();
        params["from"]["password"] = "secret".into();
        let mail = Mail::read(&params).unwrap();
        let refused = Talk::new(client).mail(&mail, false).await.unwrap_err();
        assert!(refused.contains("does not encrypt"), "{refused}");
    }

    #[test]
    fn what_would_add_a_line_is_refused() {
        for field in ["subject", "body"] {
            let mut params = params();
            params["content"][field] = "a\r\nBcc: x@y".into();
            assert_eq!(Mail::read(&params).is_err(), field == "subject");
        }
        let mut params = params();
        params["to"] = json!(["a b"]);
        assert!(Mail::read(&params).is_err());
    }
}
