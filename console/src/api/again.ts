// Acts of weight ask the user to sign in again; the page shows a dialog and says whether that was done.

/** The code of the refusal of a request that is sent again afterwards. */
export const SIGN_IN_AGAIN = "sign_in_again";

type Ask = () => Promise<boolean>;

let ask: Ask | null = null;
let asked: Promise<boolean> | null = null;

/** Let this dialog ask from now on; returns how to stop that. */
export function askWith(dialog: Ask): () => void {
  ask = dialog;
  return () => {
    if (ask === dialog) ask = null;
  };
}

/** True once the user has signed in again; false where the user did not, or no page asks. Several at once ask once. */
export function signedInAgain(): Promise<boolean> {
  asked ??= (ask?.() ?? Promise.resolve(false)).finally(() => {
    asked = null;
  });
  return asked;
}
