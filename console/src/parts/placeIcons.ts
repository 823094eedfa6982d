// Which picture stands beside which screen.
import type { ComponentType } from "react";
import type { Place } from "../places.ts";
import {
  AuditIcon,
  ClusterIcon,
  CommandIcon,
  EventIcon,
  FleetIcon,
  HealthIcon,
  JoinIcon,
  OfferIcon,
  OverviewIcon,
  PeopleIcon,
  PlusIcon,
  ReceiptIcon,
  RegionIcon,
  SettingsIcon,
  TokenIcon,
  VolumeIcon,
} from "./icons.tsx";

export const PLACE_ICONS: Record<Place["icon"], ComponentType<{ size?: number }>> = {
  overview: OverviewIcon,
  fleet: FleetIcon,
  join: JoinIcon,
  cluster: ClusterIcon,
  plus: PlusIcon,
  job: CommandIcon,
  volume: VolumeIcon,
  receipt: ReceiptIcon,
  offer: OfferIcon,
  event: EventIcon,
  command: CommandIcon,
  audit: AuditIcon,
  token: TokenIcon,
  people: PeopleIcon,
  region: RegionIcon,
  health: HealthIcon,
  settings: SettingsIcon,
};
