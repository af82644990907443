"""Secrets in what agents send: a planted canary is in no record, however it was written."""

from __future__ import annotations

import json
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.cybernet.audit_log import masked
from kvestigate.kube.redaction import masked_text, masked_words

CANARY = "c4n4ry"

COMMANDS = [
    ["run", "--token", CANARY],
    ["run", f"--token={CANARY}"],
    ["run", "--api-key", CANARY],
    ["run", f"--api-key={CANARY}"],
    ["run", "--api_key", CANARY],
    ["run", "-password", CANARY],
    ["env", f"HF_TOKEN={CANARY}", "python"],
    ["env", f"HF_TOKEN=some {CANARY} words", "python"],
    ["env", f"AWS_SECRET_ACCESS_KEY={CANARY}"],
    ["env", f"MYSQL_PWD={CANARY}", "mysql"],
    ["sh", "-c", f"HF_TOKEN={CANARY} python train.py"],
    ["sh", "-c", f"export HF_TOKEN={CANARY}; python train.py"],
    ["sh", "-c", f"export HF_TOKEN='{CANARY}' && ls"],
    ["sh", "-c", f'export HF_TOKEN="a {CANARY}"; ls'],
    ["sh", "-c", f"export HF_TOKEN=a\\ {CANARY}; ls"],
    ["sh", "-c", f"export HF_TOKEN=a'b c'\"{CANARY}\"; ls"],
    ["bash", "-lc", f"bash -c 'HF_TOKEN={CANARY} ls'"],
    ["bash", "-lc", f"bash -c \"bash -c 'run --api-key {CANARY}'\""],
    ["sh", "-c", f"run --password {CANARY} --verbose"],
    ["sh", "-c", f"run --password '{CANARY} and more'"],
    ["curl", "-H", f"Authorization: Bearer {CANARY}", "https://h"],
    ["curl", "-H", f"authorization: Basic {CANARY}", "https://h"],
    ["curl", f"-HAuthorization: Token {CANARY}", "https://h"],
    ["curl", "--header", f"X-Api-Key: {CANARY}"],
    ["curl", "--header", f"Cookie: session={CANARY}; x={CANARY}"],
    ["sh", "-c", f'curl -H "Authorization: Bearer {CANARY}" https://h'],
    ["sh", "-c", f"curl -H'Authorization: Bearer {CANARY}' https://h"],
    ["sh", "-c", f"curl --header='Authorization: Bearer {CANARY}' https://h"],
    ["curl", f"https://user:{CANARY}@host/path"],
    ["curl", f"https://{CANARY}@host/path"],
    ["curl", f"https://user:a@{CANARY}@host/path?token=x"],
    ["git", "clone", f"https://oauth2:{CANARY}@git.example/x.git"],
    ["sh", "-c", f"psql postgres://u:{CANARY}@db:5432/x"],
    ["env", f"DATABASE_URL=postgres://u:{CANARY}@db/x"],
    ["curl", f"https://h/?token={CANARY}&x=1"],
    ["curl", "-u", f"user:{CANARY}", "https://h"],
    ["curl", f"-uuser:{CANARY}", "https://h"],
    ["curl", "--user", f"user:{CANARY}"],
    ["curl", f"--user=user:{CANARY}"],
    ["curl", "--proxy-user", f"user:{CANARY}"],
    ["sh", "-c", f"curl -u 'user:{CANARY}' https://h"],
    ["mysql", "-u", "root", f"-p{CANARY}"],
    ["sshpass", "-p", CANARY, "ssh", "h"],
    ["sshpass", "-p", f"{CANARY}", "ssh"],
    ["docker", "login", "-u", "me", "-p", CANARY],
    ["tool", "-p", CANARY],
    ["redis-cli", "-a", CANARY],
    ["ldapsearch", "-w", CANARY],
    ["curl", "-d", f'{{"password": "{CANARY}", "x": 1}}'],
    ["curl", "-d", f'{{"password":"{CANARY}"}}'],
    ["sh", "-c", f'echo \'{{"token": "{CANARY}"}}\' > f'],
    ["sh", "-c", f"password = {CANARY}"],
    ["sh", "-c", f"password: {CANARY}"],
    ["sh", "-c", f"echo Bearer {CANARY}"],
    ["sh", "-c", f"cat > k <<X\n-----BEGIN RSA PRIVATE KEY-----\n{CANARY}\n-----END\nX"],
    ["git", "clone", f"https://x/y?a=ghp_{CANARY}{CANARY}"],
    ["openssl", "rsa", "-passin", f"pass:{CANARY}"],
    ["openssl", "enc", "-k", CANARY],
    ["kubectl", "create", "secret", "generic", "x", f"--from-literal=a={CANARY}"],
    ["kubectl", "create", "secret", "generic", "x", "--from-literal", f"a={CANARY}"],
    ["aws", "configure", "set", "aws_secret_access_key", CANARY],
    ["npm", "config", "set", "//r/:_authToken", CANARY],
    ["fish", "-c", f"set -x HF_TOKEN {CANARY}"],
    ["wandb", "login", CANARY],
    ["vault", "login", CANARY],
    ["python", "-c", f"os.environ['HF_TOKEN']='{CANARY}'"],
    ["sh", "-c", f"python -c \"os.environ['HF_TOKEN']='{CANARY}'\""],
    ["python", "-c", f"os.environ.setdefault('API_KEY', '{CANARY}')"],
    ["python", "-c", f"os.environ.setdefault('API_KEY','{CANARY}')"],
    ["curl", f"https://h/?X-Amz-Signature={CANARY}&x=1"],
    ["curl", f"https://h/?sig={CANARY}"],
    ["curl", f"https://hooks.slack.com/services/T00/B00/{CANARY}"],
    ["curl", "-b", f"session={CANARY}"],
    ["curl", "-H", f"X-Auth: {CANARY}"],
    ["curl", "--pass", CANARY],
    ["unzip", "-P", CANARY, "x.zip"],
    ["ssh-keygen", "-N", CANARY],
    ["smbclient", "-U", f"me%{CANARY}"],
    ["sh", "-c", f"cat <<X\npassword: |\n  {CANARY}\nX"],
    ["sh", "-c", f"cat <<X\ntoken: >-\n  {CANARY}\nX"],
    ["sh", "-c", f"CONN='AccountKey={CANARY};'"],
    *(["env", f"{name}={CANARY}"] for name in ("SSHPASS", "DB_PASS", "GH_PAT", "REDISCLI_AUTH")),
    *(
        ["env", f"{name}={CANARY}"]
        for name in ("OTP", "SLACK_WEBHOOK", "SENTRY_DSN", "LICENSE_KEY")
    ),
    *(["echo", f"{mark}{CANARY}{CANARY}"] for mark in ("AIza", "npm_", "nvapi-", "r8_", "pypi-")),
]


@pytest.mark.parametrize("command", COMMANDS, ids=map(str, range(len(COMMANDS))))
def test_a_canary_in_a_command_is_not_recorded(command: list[str]) -> None:
    assert CANARY not in json.dumps(masked({"command": command}))
    assert CANARY not in masked_text(shlex.join(command))
    assert CANARY not in json.dumps(masked({"command": ["sh", "-c", shlex.join(command)]}))


def test_what_was_done_is_still_told() -> None:
    script = "curl -H 'Authorization: Bearer x' https://h; TOKEN=y rm -rf /data --verbose"
    shown = masked_text(script)
    for word in ("curl", "https://h", "rm -rf /data --verbose"):
        assert word in shown
    plain = ["mkdir", "-p", "out", "&&", "ssh", "-p", "22", "python", "train.py", "--lr=0.1", "a:b"]
    assert masked_words(plain) == plain


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
NAMES = st.sampled_from(["token", "HF_TOKEN", "db_password", "API-KEY", "client_secret", "X_PWD"])
FORMS = st.sampled_from(
    [
        "{name}={secret}",
        '{name}="{secret}"',
        "{name}: {secret}",
        "--{name} {secret}",
        "--{name}={secret}",
        "--{name} '{secret}'",
        "Authorization: Bearer {secret}",
        "https://me:{secret}@host/",
        '{{"{name}": "{secret}"}}',
    ]
)
# Whatever else is in the text may not hide where a word begins.
AROUND = st.lists(
    st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1, max_size=8), max_size=4
)


@given(AROUND, FORMS, NAMES, AROUND)
def test_a_canary_among_other_words_is_not_recorded(
    before: list[str], form: str, name: str, after: list[str]
) -> None:
    text = " ".join([*before, form.format(name=name, secret=CANARY), *after])
    assert CANARY not in masked_text(text)
    assert CANARY not in json.dumps(masked(["sh", "-c", text]))
    assert CANARY not in json.dumps(masked(["sh", "-c", shlex.join(["bash", "-c", text])]))
    assert CANARY not in json.dumps(masked({"env": {name: text}, "x": [{name: [CANARY]}]}))


@given(st.lists(WORDS, max_size=6))
def test_any_words_can_be_masked_and_stay_as_many(words: list[str]) -> None:
    assert len(masked_words(words)) == len(words)
    masked_text(" ".join(words))


@given(WORDS)
def test_what_names_nothing_is_kept(text: str) -> None:
    """Blanks and quotes and all."""
    if not any(mark in text for mark in ":=-@") and "bearer" not in text.lower():
        assert masked_text(text) == text
