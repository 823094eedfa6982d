// The first page of each product.
import { useQuery } from "@tanstack/react-query";
import { me as meQuery } from "../api/queries.ts";
import { useProduct } from "../app/product.ts";
import { OperatorHome } from "./OperatorHome.tsx";
import { ProviderHome } from "./ProviderHome.tsx";
import { RenterHome } from "./RenterHome.tsx";

export function HomePage() {
  const product = useProduct();
  const me = useQuery(meQuery).data;
  if (!me) return null;
  if (product === "operate") return <OperatorHome />;
  return product === "provide" ? <ProviderHome /> : <RenterHome me={me} />;
}
