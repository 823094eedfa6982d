// What of a folder is not sent, by name, and how much is, from sdk/windrow/folder/: written by
// `python -m tests.architecture.request_fields`. SECRET_TEXT: a pattern over bytes, with the flags i and m.
export const LEFT_BEHIND = [
  ".git", ".hg", ".svn", ".ssh", ".venv", "venv", "node_modules", "__pycache__", ".windrow", ".mypy_cache",
  ".ruff_cache", ".pytest_cache", ".tox", ".DS_Store",
];
export const SECRET_FOLDERS = [
  ".aws", ".azure", ".gnupg", ".kaggle", ".kube", ".gcloud", ".oci", ".password-store",
];
export const SECRET_PATHS = [
  ".config/gcloud", ".config/gh", ".docker/config.json", ".cargo/credentials.toml", ".gem/credentials",
  "huggingface/token", ".huggingface/token", "huggingface/stored_tokens",
];
export const SECRET_NAMES = [
  ".env", ".env.*", "*.env", ".envrc", "*.pem", "*.key", "*.p12", "*.pfx", "*.ppk", "*.jks", "*.keystore", "*.kdbx",
  "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", ".netrc", "_netrc", ".pgpass", ".my.cnf", ".pypirc",
  ".git-credentials", ".htpasswd", ".vault-token", ".boto", ".s3cfg", ".dockerconfigjson", ".dockercfg", ".npmrc",
  "credentials", "*credentials*.json", "client_secret*.json", "*service*account*.json", "*-key.json", "*_key.json",
  "*_api_key", "*_token", "*_token.txt", "token.json", "token.pickle", "kaggle.json", "rclone.conf", ".rclone.conf",
  "wallet.dat", ".databrickscfg", "secrets.json", "secrets.toml", "secrets.yaml", "secrets.yml", "*.tfvars",
  "*.tfstate", "*.tfstate.backup", ".terraformrc", "kubeconfig",
];
export const OPEN_NAMES = [
  ".env.example", ".env.sample", ".env.template", ".env.dist", "example.env", "*.pub",
];
export const ENVIRONMENT_MARK = [
  "pyvenv.cfg",
].join("");
export const SECRET_TEXT = [
  "^-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----\\r?$|^PuTTY-User-Key-File-",
  "\\d|^\\s*aws_secret_access_key\\s*=\\s*[A-Za-z0-9/+]{40}\\s*$|\\\"private_key\\\"\\s*:\\s*\\",
  "\"-----BEGIN |^[^#;]*:_(?:authToken|password|auth)\\s*=\\s*[^\\s$]",
].join("");
export const SECRET_LOOK_BYTES = 65536;
export const NAME_BYTES_MAX = 1024;
export const FOLDER_BYTES_MAX = 1073741824;
export const FILES_MAX = 100000;
