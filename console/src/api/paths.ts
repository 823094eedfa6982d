// Where the API's routes are. Pure.

const API = "/api/v1";
/** The registry of compute resources, which is not below the others. */
export const REGISTRY = "/api/model-studio/compute-resources";

/** The whole path of a route that is named by what follows API, or whole already. */
export const wholePath = (path: string): string => (path.startsWith("/api/") ? path : API + path);
